"""Merge segments of a shard, and remove files that no version needs.

Compaction merges all segments of each shard. An update merges only the newest ones, where they are
small compared with it, so that the number of segments stays small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from cluster.arrow_records import with_all_columns
from cluster.errors import CiteRayError, InputError
from cluster.index.layout import CURRENT, LEASE, TERM_COUNTS, graph_file, segment_directory
from cluster.index.lease import LEASE_S, Lease, hold_lease
from cluster.index.manifest import DeadEntry, Manifest, SegmentEntry, ShardEntry
from cluster.index.put_segment import find_segment
from cluster.index.read_records import Rows
from cluster.index.read_segment import SegmentReader
from cluster.index.read_shard import ShardReader
from cluster.index.supersedes import (
    Supersedes,
    deleted_pmids,
    read_supersedes,
    write_supersedes,
)
from cluster.index.terms.term_table import merge_terms, negated
from cluster.index.tokens.codec import TokenCodec
from cluster.index.vectors import Vectors
from cluster.index.versions import named_by
from cluster.index.write_segment import (
    NONE_DEAD,
    Dead,
    SegmentPlan,
    SegmentRows,
    Written,
    write_graph,
    write_rows,
)
from cluster.storage.locations import Location, list_files, remove
from pipelines.indexing.shards.build_shard import BATCH_ROWS
from pipelines.indexing.staging.drop_staging import drop_taken
from pipelines.indexing.staging.plan_build import folded_id
from pipelines.vocabulary.mine_vocabulary import merge_counts, read_counts, write_counts

# The most segments of a shard after an update, including the update's own.
MOST_SEGMENTS = 8


def _rows(segments: Sequence[SegmentReader], chosen: Sequence[np.ndarray]) -> SegmentRows:
    """Return the citations at the `chosen` rows of each segment, merged in PMID order."""
    tables, spans, parts, tokens = [], [], [], []
    for segment, rows in zip(segments, chosen, strict=True):
        records = segment.records
        tables.append(with_all_columns(records.table(rows)))
        here = records.span_lists(rows)
        spans.append(here)
        passages = records.passages_of(rows)
        if len(rows):
            ends = here.offsets.to_numpy()
            parts += np.split(segment.vectors(passages), ends[1:-1])
            tokens += _by_citation(segment, passages, ends)
    together = pa.concat_tables(tables)
    order = np.argsort(together.column("pmid").to_numpy())
    (citations,) = together.take(order).combine_chunks().to_batches()
    return SegmentRows(
        citations,
        pa.concat_arrays(spans).take(pa.array(order)),
        np.concatenate([parts[position] for position in order]),
        np.concatenate([tokens[position][0] for position in order]),
        b"".join(tokens[position][1].tobytes() for position in order),
    )


def _by_citation(
    segment: SegmentReader, passages: np.ndarray, ends: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each citation the token counts and token codes of its passages.

    `ends` are the bounds between the passages of two citations.
    """
    stored = segment.opened.tokens
    if stored is None:
        counts, codes = np.zeros(len(passages), np.int64), np.empty((0, 0), np.uint8)
    else:
        codes, counts = stored.of(passages)
    before = np.append(0, np.cumsum(counts))[ends]
    return list(zip(np.split(counts, ends[1:-1]), np.split(codes, before[1:-1]), strict=True))


def _live_rows(segments: Sequence[SegmentReader]) -> Iterator[SegmentRows]:
    """Yield the live citations of all segments in PMID order, BATCH_ROWS at a time."""
    for chosen in _live_chunks(segments):
        yield _rows(segments, chosen)


def _live_vectors(segments: Sequence[SegmentReader]) -> Iterator[Vectors]:
    """Yield only the vectors of `_live_rows`."""
    for chosen in _live_chunks(segments):
        parts: list[Vectors] = []
        for segment, rows in zip(segments, chosen, strict=True):
            if len(rows):
                ends = segment.records.span_lists(rows).offsets.to_numpy()
                vectors = segment.vectors(segment.records.passages_of(rows))
                parts += np.split(vectors, ends[1:-1])
        pmids = [s.pmids[rows] for s, rows in zip(segments, chosen, strict=True)]
        order = np.argsort(np.concatenate(pmids))
        yield np.concatenate([parts[position] for position in order])


def _live_chunks(segments: Sequence[SegmentReader]) -> Iterator[list[Rows]]:
    """Yield rows of each segment, together BATCH_ROWS live citations, in PMID order."""
    rows = [segment.live_rows() for segment in segments]
    owners = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    flat = np.concatenate(rows)
    pmids = np.concatenate([s.pmids[r] for s, r in zip(segments, rows, strict=True)])
    order = np.argsort(pmids)
    for begin in range(0, len(order), BATCH_ROWS):
        chunk = order[begin : begin + BATCH_ROWS]
        yield [np.sort(flat[chunk[owners[chunk] == n]]) for n in range(len(segments))]


def compact_graph(index: Location, shard: int, before: ShardEntry, plan: SegmentPlan) -> str:
    """Write the vectors of the compacted segment, unless that segment is complete.

    Return the result of `write_graph`.
    """
    plan = replace(plan, id=folded_id([s.id for s in before.segments]))
    if find_segment(index / segment_directory(shard, plan.id)) is not None:
        return ""
    reader = ShardReader(index, shard, before, ef_search=1, exact_below=0)
    return write_graph(_live_vectors(reader.segments), index / graph_file(shard, plan.id), plan)


def compact_shard(
    index: Location,
    shard: int,
    before: ShardEntry,
    plan: SegmentPlan,
    codec: TokenCodec | None,
    graph: Location | None = None,
) -> SegmentEntry:
    """Merge all segments of `shard` and return the entry of the result, as `merge_tail` does.

    `graph` is the file of `compact_graph` (default: the vectors are written here).
    """
    count = len(before.segments)
    return merge_tail(index, shard, before, count, plan, codec, graph).segments[0]


def tail_to_merge(sizes: Sequence[int], added: int) -> int:
    """Return how many of the last segments to merge when one of `added` citations is appended.

    `sizes` are the citations of the segments, oldest first. Merge those that are at most twice as
    large as all newer ones together, so that each citation is written a logarithmic number of
    times; if more than MOST_SEGMENTS would remain, allow larger ratios.
    """
    ratio = 2
    while True:
        newer, merged = max(added, 1), 0
        for size in reversed(sizes):
            if size > ratio * newer:
                break
            newer, merged = newer + size, merged + 1
        remaining = len(sizes) - max(merged - 1, 0) + 1
        if remaining <= MOST_SEGMENTS:
            return merged if merged > 1 else 0
        ratio *= 2


def merge_tail(
    index: Location,
    shard: int,
    before: ShardEntry,
    count: int,
    plan: SegmentPlan,
    codec: TokenCodec | None,
    graph: Location | None = None,
) -> ShardEntry:
    """Merge the last `count` segments of `shard` into one; fewer than two are left as they are.

    Stored vectors and token codes are reused; nothing is encoded. Every checksum is verified first.
    The result replaces and removes in older segments what the merged ones did. A rerun reuses a
    complete merged segment. `plan.id` is not used: the new segment is named after the old ones.
    Raises IndexFormatError for an artefact that differs from the manifest.
    """
    if count < 2:
        return before
    older, tail = before.segments[:-count], before.segments[-count:]
    plan = replace(plan, id=folded_id([s.id for s in tail]))
    entry = ShardEntry(segments=tail)
    reader = ShardReader(index, shard, entry, ef_search=1, exact_below=0, codec=codec)
    segments = reader.segments

    def complete(directory: Path, written: Written) -> Dead:
        entries = [read_supersedes(s.records.directory) for s in segments]
        pmids = deleted = deleted_pmids(entries)
        if older:
            pmids = np.unique(np.concatenate([each.pmids for each in entries]))
        write_supersedes(Supersedes(pmids, np.isin(pmids, deleted)), directory)
        counts = merge_counts(read_counts(s.records.directory / TERM_COUNTS) for s in segments)
        write_counts(counts, directory / TERM_COUNTS)
        return _dead_in_older(segments, written) if older else NONE_DEAD

    directory = index / segment_directory(shard, plan.id)
    merged = write_rows(_live_rows(segments), directory, plan, complete, graph)
    return ShardEntry(segments=(*older, merged))


def _dead_in_older(segments: Sequence[SegmentReader], written: Written) -> Dead:
    """Return what merged segments replaced in older ones: all units that they made dead, minus
    those among themselves, which are the ones that were not written.
    """
    entries = [segment.opened.entry for segment in segments]
    added = merge_terms([segment.opened.terms for segment in segments])
    dead = DeadEntry(
        citations=written.citations - sum(s.citations - s.dead.citations for s in entries),
        passages=written.passages - sum(s.passages - s.dead.passages for s in entries),
        terms={
            over: count - sum(s.live_terms(over) for s in entries)
            for over, count in written.terms.items()
        },
    )
    return Dead(dead, merge_terms([written.table, negated(added)]))


def prune(index: Location, manifest: Manifest) -> list[str]:
    """Remove all versions except `manifest`, the published one, and the segments only they use.

    Return the removed paths, relative to the index. A reader with an old version open can use its
    mapped files until it closes them. Raises LeaseHeldError if another command is changing the
    index, CiteRayError if another version was published since, and InputError if the staging of an
    interrupted run exists, because its segments are in no version yet.
    """
    with hold_lease(index, "prune") as lease:
        if lease.version != manifest.version:
            raise CiteRayError(
                f"{index}: {lease.version} was published after {manifest.version}; run it again"
            )
        drop_taken(lease)
        if (index / "staging").is_dir():
            raise InputError(
                f"{index / 'staging'}: a build or update was interrupted; run it again, or delete "
                "this folder, then prune"
            )
        return _remove_others(lease, manifest)


def _remove_others(lease: Lease, manifest: Manifest) -> list[str]:
    index = lease.index
    # Versions first, so that an interruption leaves segments without a version, never the reverse.
    found = [f"versions/{name.split('/')[0]}" for name in list_files(index / "versions")]
    parts = [name.split("/") for name in list_files(index / "segments")]
    found += ["/".join(("segments", *part[:2])) for part in parts if len(part) > 1]
    removed = [name for name in dict.fromkeys(found) if name not in named_by(manifest)]
    removed += _stale_temporary_files(index)
    # Renewing proves that no other writer took over while files were listed.
    lease.renew()
    for name in removed:
        lease.check()
        remove(index / name)
    return removed


def _stale_temporary_files(index: Location) -> list[str]:
    """Return temporary files of CURRENT and LEASE that killed writers left.

    These are the files that are older than a lease can be.
    """
    if not isinstance(index, Path):
        return []
    # The lease was just renewed, so its file shows the current time of this file system.
    now = (index / LEASE).stat().st_mtime
    found = (path for name in (CURRENT, LEASE) for path in index.glob(f".{name}.*"))
    return [path.name for path in found if now - path.stat().st_mtime > LEASE_S]
