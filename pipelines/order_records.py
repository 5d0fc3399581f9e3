"""Which record of a PMID is live: the newest by (file, position), unless that deletes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LiveRows:
    """`rows` of the live records, by ascending PMID, and how many were left out and why."""

    rows: Ints
    superseded: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Events:
    """Parallel arrays: what happened to which PMID, in which file, at which position."""

    pmids: Ints
    files: Ints
    positions: Ints


def live_rows(records: Events, deletions: Events) -> LiveRows:
    """The live rows of `records`, given deletions from the same files.

    A row that occurs twice (same PMID, file and position: a step that was retried)
    counts once. `superseded` counts records with a newer one of their PMID, `deleted`
    PMIDs whose newest event is a deletion, among those that had a record.
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
    deleted = np.intersect1d(pmids[newest[newest >= count]], records.pmids)
    return LiveRows(rows, superseded=distinct - len(rows) - len(deleted), deleted=len(deleted))
