"""Find the live record of each PMID: the newest one of its highest version that is not deleted.

Events apply in the order of (file, position). A record replaces the live one unless the live one
has a higher version. A deletion removes the live record if it names the record's version or no
version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
# The version of a deletion that names no version.
ANY_VERSION = 0


@dataclass(frozen=True, slots=True)
class LiveRows:
    """Rows of the live records, by ascending PMID, and the PMIDs that are deleted.

    `records` is the number of distinct records. `removed` are the PMIDs whose deciding event is a
    deletion; `deleted_pmids` are those of them that had a record. `touched` are all PMIDs with a
    deciding event among the new ones. All are ascending.
    """

    rows: Ints
    records: int
    deleted_pmids: Ints
    removed: Ints
    touched: Ints

    @property
    def deleted(self) -> int:
        """Return the number of PMIDs that had a record and are deleted."""
        return len(self.deleted_pmids)

    @property
    def superseded(self) -> int:
        """Return the number of distinct records that another record of their PMID replaces."""
        return self.records - len(self.rows) - self.deleted


@dataclass(frozen=True, slots=True)
class Events:
    """Records or deletions as parallel arrays: PMID, file, position and version.

    `versions` are those of the records, or those that the deletions name.
    """

    pmids: Ints
    files: Ints
    positions: Ints
    versions: Ints


NO_EVENTS = Events(*[np.empty(0, np.int64)] * 4)


def join_events(parts: Sequence[Events]) -> Events:
    """Return the events of all parts, in order."""
    return Events(
        np.concatenate([part.pmids for part in parts]),
        np.concatenate([part.files for part in parts]),
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.versions for part in parts]),
    )


def deciding_events(events: Events, deletes: npt.NDArray[np.bool_]) -> Ints:
    """Return for each PMID, ascending, the index of the event that determines its final state.

    `deletes` is true for deletions and false for records.
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
    # Nearly every PMID has only one version; its last event decides.
    for position in np.flatnonzero(lowest < highest):
        found[position] = _decide(
            order[begins[position] : ends[position]], events.versions, deletes
        )
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
    """Return the live rows of `records`, given deletions from the same files.

    `held` are the live records of an index, one per PMID, with their position in the order of
    events; a PMID whose held record stays live is not touched. A row that occurs twice (same PMID,
    file and position, as when a step was retried) counts once.
    """
    count, events = len(records.pmids), len(records.pmids) + len(deletions.pmids)
    every = join_events([records, deletions, held])
    number = np.arange(len(every.pmids))
    decided = deciding_events(every, (number >= count) & (number < events))
    decided = decided[decided < events]
    rows = decided[decided < count]
    identity = np.stack([records.pmids, records.files, records.positions])
    distinct = np.unique(identity, axis=1).shape[1] if count else 0
    removed = every.pmids[decided[decided >= count]]
    deleted = np.intersect1d(removed, records.pmids)
    return LiveRows(rows, distinct, deleted, removed, every.pmids[decided])
