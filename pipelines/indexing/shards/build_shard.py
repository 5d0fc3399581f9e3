"""Build the segment of one shard from the staged citations: the live records, in PMID order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa

from cluster.arrow_records import CITATION_SCHEMA, RowTaker, citation_from_row
from cluster.index import vectors
from cluster.index.layout import TERM_COUNTS, graph_file, segment_directory
from cluster.index.manifest import SegmentEntry
from cluster.index.put_segment import find_segment
from cluster.index.supersedes import Supersedes, write_supersedes
from cluster.index.write_segment import (
    EMBEDDED_SCHEMA,
    NONE_DEAD,
    Dead,
    SegmentPlan,
    Written,
    staged_vectors,
    write_graph,
    write_segment,
)
from cluster.records import Citation
from cluster.storage.locations import Location
from cluster.storage.whole_files import published_atomically
from pipelines.indexing.shards.order_records import (
    NO_EVENTS,
    Events,
    LiveRows,
    join_events,
    live_rows,
)
from pipelines.indexing.sources.late_sources import SourceOrder
from pipelines.indexing.staging.stage_citations import kept_beside, read_deletions, read_parts
from pipelines.vocabulary.mine_vocabulary import count_terms, write_counts

BATCH_ROWS = 2000
EVENT_COLUMNS = ("pmid", "version", "position")


@dataclass(frozen=True, slots=True)
class ShardSummary:
    """A built segment, and the numbers of staged records that were superseded or deleted."""

    entry: SegmentEntry
    superseded: int
    deleted: int


@dataclass(frozen=True, slots=True)
class StagedShard:
    """The staged rows of one shard, memory-mapped, and which of them are live."""

    table: pa.Table
    live: LiveRows
    records: Events
    deletions: Events

    def beside(self, held: Events) -> StagedShard:
        """Return the same rows; their live rows now also depend on `held`, records of the index."""
        return replace(self, live=live_rows(self.records, self.deletions, held))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the live rows in PMID order, in batches of up to BATCH_ROWS."""
        taker = RowTaker(self.table)
        for begin in range(0, len(self.live.rows), BATCH_ROWS):
            chunk = taker.take(self.live.rows[begin : begin + BATCH_ROWS])
            yield from chunk.combine_chunks().to_batches()

    def citations(self) -> Iterator[Citation]:
        """Yield the live citations in PMID order."""
        for batch in self.batches():
            yield from map(citation_from_row, batch.select(CITATION_SCHEMA.names).to_pylist())


def _events(tables: Sequence[pa.Table], ranks: Sequence[int]) -> Events:
    parts = [
        Events(
            _column(table, "pmid"),
            np.full(len(table), rank, np.int64),
            _column(table, "position"),
            _column(table, "version"),
        )
        for table, rank in zip(tables, ranks, strict=True)
    ]
    return join_events([NO_EVENTS, *parts])


def _column(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table.column(name).to_numpy(), np.int64)


def read_staged(
    directories: Sequence[Location],
    shard: int,
    columns: Sequence[str] | None = None,
    order: SourceOrder | None = None,
) -> StagedShard:
    """Return the staged rows of `shard`, from sources in the order in which they apply.

    `columns` selects columns (default all); it must include EVENT_COLUMNS, which determine the live
    rows. With `order`, deletions by sources in the index apply too, for PMIDs that appear in the
    staged sources. Raises the same errors as `read_parts`.
    """
    removed = [read_deletions(directory) for directory in directories]
    tables = [
        read_parts(directory, shard, columns, kept_beside(deletions))
        for directory, deletions in zip(directories, removed, strict=True)
    ]
    ranks = list(order.staged) if order else list(range(len(directories)))
    records = _events(tables, ranks)
    deletions = _events(removed, ranks)
    if order:
        touched = np.union1d(records.pmids, deletions.pmids)
        held = [_held_deletions(rank, gone, touched) for rank, gone in order.deletions.items()]
        deletions = join_events([deletions, *held])
    live = live_rows(records, deletions)
    return StagedShard(pa.concat_tables(tables), live, records, deletions)


def _held_deletions(rank: int, gone: np.ndarray, touched: np.ndarray) -> Events:
    """Return the deletions of `touched` PMIDs; they apply before the same source's records."""
    pmids, versions = gone[np.isin(gone[:, 0], touched)].T
    return Events(pmids, np.full(len(pmids), rank), np.full(len(pmids), -1), versions)


def train_quantiser(sample: vectors.Vectors, path: Location, plan: SegmentPlan) -> None:
    """Write an empty vector index, trained on `sample` (n, d), that every shard fills.

    Only sq8 is trained: it takes the lowest and highest value of each dimension, so that two rows
    with these values are enough. With a common quantiser, a vector gets the same code and the same
    score in any shard.
    """
    empty = vectors.empty_index(plan.vectors, plan.dimensions, plan.hnsw_m, plan.ef_construction)
    if not empty.is_trained:
        if len(sample) == 0:
            sample = np.zeros((1, plan.dimensions), np.float32)
        faiss.omp_set_num_threads(plan.threads)
        empty.train(sample)
    with published_atomically(path) as aside:
        vectors.save(empty, aside)


def build_graph(
    index: Location, shard: int, directories: Sequence[Location], plan: SegmentPlan
) -> str:
    """Write the vectors of the segment of `shard`, unless the segment is complete.

    Return the result of `write_graph`.
    """
    if find_segment(index / segment_directory(shard, plan.id)) is not None:
        return ""
    staged = read_staged(directories, shard, (*EVENT_COLUMNS, "vectors"))
    parts = (staged_vectors(batch, plan.dimensions) for batch in staged.batches())
    return write_graph(parts, index / graph_file(shard, plan.id), plan)


def build_shard(
    index: Location,
    shard: int,
    directories: Sequence[Location],
    plan: SegmentPlan,
    graph: Location | None = None,
) -> ShardSummary:
    """Write the segment of `shard`; a rerun reuses the segment if it is complete.

    `graph` is the file of `build_graph` (default: the vectors are written here).
    """
    columns = [name for name in EMBEDDED_SCHEMA.names if graph is None or name != "vectors"]
    staged = read_staged(directories, shard, columns)

    def complete(directory: Path, _: Written) -> Dead:
        deleted = staged.live.deleted_pmids
        write_supersedes(Supersedes(deleted, np.ones(len(deleted), np.bool_)), directory)
        write_counts(count_terms(staged.citations()), directory / TERM_COUNTS)
        return NONE_DEAD

    directory = index / segment_directory(shard, plan.id)
    entry = write_segment(staged.batches(), directory, plan, complete, graph)
    return ShardSummary(entry, staged.live.superseded, staged.live.deleted)
