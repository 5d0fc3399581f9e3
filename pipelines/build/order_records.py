"""Which record of a PMID is live: the newest one of its highest version that is not deleted.

Events apply in the order of (file, position), as a plain reading would: a record takes the place
of the live one unless that is of a higher version, and a deletion removes the live one if it is
of the version that the deletion names, or if it names none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
# The version that a deletion names where it names none.
ANY_VERSION = 0


@dataclass(frozen=True, slots=True)
class LiveRows:
    """`rows` of the live records, by ascending PMID, and what became of the others.

    Of `records` distinct ones, `superseded` are not live because of another of their PMID.
    `deleted_pmids` had a record, and what counts of them is a deletion; `removed` are all
    PMIDs of which the latter is true, `touched` all of which any event counts. Each is ascending.
    """

    rows: Ints
    records: int
    deleted_pmids: Ints
    removed: Ints
    touched: Ints

    @property
    def deleted(self) -> int:
        """Number of PMIDs that had a record and end deleted."""
        return len(self.deleted_pmids)

    @property
    def superseded(self) -> int:
        """Number of distinct records that another one of their PMID replaces."""
        return self.records - len(self.rows) - self.deleted


@dataclass(frozen=True, slots=True)
class Events:
    """Parallel arrays: what happened to which PMID, in which file, at which position.

    `versions` are those of records, or the ones that deletions name.
    """

    pmids: Ints
    files: Ints
    positions: Ints
    versions: Ints


NO_EVENTS = Events(*[np.empty(0, np.int64)] * 4)


def join_events(parts: Sequence[Events]) -> Events:
    """The events of all parts, in their order."""
    return Events(
        np.concatenate([part.pmids for part in parts]),
        np.concatenate([part.files for part in parts]),
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.versions for part in parts]),
    )


def deciding_events(events: Events, deletes: npt.NDArray[np.bool_]) -> Ints:
    """For each PMID, ascending, the event after which nothing changes it any more.

    `deletes` tells deletions from records.
    """
    if not len(events.pmids):
        return np.empty(0, np.int64)
    order = np.lexsort((events.positions, events.files, events.pmids))
    begins = np.flatnonzero(np.diff(events.pmids[order], prepend=-1))
    ends = np.append(begins[1:], len(order))
    found = order[ends - 1]
    versions = events.versions[order]
    named = np.where(versions == ANY_VERSION, np.iinfo(np.int64).max, versions)
    lowest, highest = (
        f.reduceat(v, begins) for f, v in ((np.minimum, named), (np.maximum, versions))
    )
    # Nearly every PMID has one version only, of which the last event decides.
    for place in np.flatnonzero(lowest < highest):
        found[place] = _decide(order[begins[place] : ends[place]], events.versions, deletes)
    return np.asarray(found, np.int64)


def _decide(in_order: Ints, versions: Ints, deletes: npt.NDArray[np.bool_]) -> int:
    decided = int(in_order[0])
    for event in map(int, in_order[1:]):
        if deletes[decided]:
            counts = True
        elif deletes[event]:
            counts = versions[event] in (ANY_VERSION, versions[decided])
        else:
            counts = versions[event] >= versions[decided]
        decided = event if counts else decided
    return decided


def live_rows(records: Events, deletions: Events, held: Events = NO_EVENTS) -> LiveRows:
    """The live rows of `records`, given deletions from the same files.

    `held` are live records of an index, one a PMID, where they stand among the events; a PMID of
    which one of these is live still is not touched.
    A row that occurs twice (same PMID, file and position: a step that was retried)
    counts once.
    """
    count, told = len(records.pmids), len(records.pmids) + len(deletions.pmids)
    every = join_events([records, deletions, held])
    number = np.arange(len(every.pmids))
    decided = deciding_events(every, (number >= count) & (number < told))
    decided = decided[decided < told]
    rows = decided[decided < count]
    identity = np.stack([records.pmids, records.files, records.positions])
    distinct = np.unique(identity, axis=1).shape[1] if count else 0
    removed = every.pmids[decided[decided >= count]]
    deleted = np.intersect1d(removed, records.pmids)
    return LiveRows(rows, distinct, deleted, removed, every.pmids[decided])
