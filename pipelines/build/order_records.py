"""Which record of a PMID is live: the newest by (file, position), unless that deletes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LiveRows:
    """`rows` of the live records, by ascending PMID, and what became of the others.

    Of `records` distinct ones, `superseded` have a newer one of their PMID.
    `deleted_pmids` had a record, and their newest event is a deletion; `removed` are all
    PMIDs of which the latter is true, `touched` all of any event. Each is ascending.
    `touched_files` has the file of each one's newest event.
    """

    rows: Ints
    records: int
    deleted_pmids: Ints
    removed: Ints
    touched: Ints
    touched_files: Ints

    @property
    def deleted(self) -> int:
        """Number of PMIDs that had a record and end deleted."""
        return len(self.deleted_pmids)

    @property
    def superseded(self) -> int:
        """Number of distinct records that a newer one of their PMID replaces."""
        return self.records - len(self.rows) - self.deleted


@dataclass(frozen=True, slots=True)
class Events:
    """Parallel arrays: what happened to which PMID, in which file, at which position."""

    pmids: Ints
    files: Ints
    positions: Ints


def live_rows(records: Events, deletions: Events) -> LiveRows:
    """The live rows of `records`, given deletions from the same files.

    A row that occurs twice (same PMID, file and position: a step that was retried)
    counts once.
    """
    count = len(records.pmids)
    pmids = np.concatenate([records.pmids, deletions.pmids])
    files = np.concatenate([records.files, deletions.files])
    positions = np.concatenate([records.positions, deletions.positions])
    order = np.lexsort((positions, files, pmids))
    last = np.append(np.diff(pmids[order]) != 0, True) if len(order) else np.empty(0, bool)
    newest = order[last]
    rows = newest[newest < count]
    identity = np.stack([records.pmids, records.files, records.positions])
    distinct = np.unique(identity, axis=1).shape[1] if count else 0
    removed = pmids[newest[newest >= count]]
    deleted = np.intersect1d(removed, records.pmids)
    return LiveRows(rows, distinct, deleted, removed, pmids[newest], files[newest])
