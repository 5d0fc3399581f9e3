"""Late sources: those that come before the last source that an index holds.

What a late source says of a PMID counts unless a later source that the index holds speaks of
the same PMID. Live records tell which source they are of. Deletions do not, and one of a PMID
without a record left no trace: so the deletions of the later sources are read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cluster.errors import InputError
from cluster.index.manifest import Manifest
from cluster.index.read_records import Rows, SegmentRecords
from cluster.pubmed.parse_articles import read_records
from cluster.pubmed.source_order import natural_key
from cluster.records import Deletion
from cluster.storage.object_store import File
from pipelines.build.order_records import LiveRows


@dataclass(frozen=True, slots=True)
class SourceOrder:
    """Where the sources of an update stand among those that the index holds.

    `ranks` has the place of every source by its name, `staged` those of the update's own in
    their order. `deletions` are the PMIDs that held sources delete, by the source's rank.
    """

    ranks: Mapping[str, int]
    staged: Sequence[int]
    deletions: Mapping[int, Rows]


def later_deleting(manifest: Manifest, first: str) -> list[str]:
    """The sources of `manifest` after the source `first` that delete anything."""
    key = natural_key(first)
    return [s.name for s in manifest.sources if s.deletions and natural_key(s.name) > key]


def files_of(names: Sequence[str], sources: Sequence[File], late: str) -> list[File]:
    """Those of `sources` with these names. Raises InputError that names one that is not there."""
    given = {path.name: path for path in sources}
    if missing := [name for name in names if name not in given]:
        raise InputError(
            f"{late}: to apply it late, the deletions of {', '.join(missing)} are needed; name "
            "these files as well"
        )
    return [given[name] for name in names]


def deleted_in(path: File) -> Rows:
    """The PMIDs that the source deletes, ascending."""
    found = (record.pmid for record in read_records(path) if isinstance(record, Deletion))
    return np.unique(np.fromiter(found, np.int64))


def order_of(
    manifest: Manifest, names: Sequence[str], deletions: Mapping[str, Rows]
) -> SourceOrder:
    """The order of the sources `names` of an update, with the `deletions` of held ones."""
    every = sorted({*(s.name for s in manifest.sources), *names}, key=natural_key)
    ranks = {name: rank for rank, name in enumerate(every)}
    by_rank = {ranks[name]: pmids for name, pmids in deletions.items()}
    return SourceOrder(ranks, [ranks[name] for name in names], by_rank)


def without_overridden(
    live: LiveRows,
    pmids: Rows,
    segments: Sequence[SegmentRecords],
    rows: Sequence[Rows],
    order: SourceOrder,
) -> LiveRows:
    """`live` without the PMIDs of which the index holds a record of a later source.

    `pmids` are those of the staged rows, `rows` each segment's rows that are live and touched.
    """
    overridden = [np.empty(0, np.int64)]
    for segment, chosen in zip(segments, rows, strict=True):
        held = segment.pmids[chosen]
        names = segment.table(chosen).column("source").to_pylist()
        ranks = np.asarray([order.ranks[name] for name in names], np.int64)
        newest = live.touched_files[np.searchsorted(live.touched, held)]
        # The same rank is of a source that deletes a PMID and then gives it a record.
        overridden.append(held[ranks >= newest])
    gone = np.concatenate(overridden)
    touched = ~np.isin(live.touched, gone)
    return LiveRows(
        rows=live.rows[~np.isin(pmids[live.rows], gone)],
        records=live.records,
        deleted_pmids=np.setdiff1d(live.deleted_pmids, gone),
        removed=np.setdiff1d(live.removed, gone),
        touched=live.touched[touched],
        touched_files=live.touched_files[touched],
    )
