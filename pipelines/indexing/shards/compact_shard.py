"""Compaction: merge the segments of a shard into one, and remove files that no version needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from cluster.errors import CiteRayError, InputError
from cluster.index.layout import CURRENT, LEASE, TERM_COUNTS, segment_directory
from cluster.index.lease import LEASE_S, Lease, hold_lease
from cluster.index.manifest import Manifest, SegmentEntry, ShardEntry
from cluster.index.read_segment import SegmentReader
from cluster.index.read_shard import ShardReader
from cluster.index.supersedes import (
    Supersedes,
    deleted_pmids,
    read_supersedes,
    write_supersedes,
)
from cluster.index.tokens.codec import TokenCodec
from cluster.index.versions import named_by
from cluster.index.write_segment import NONE_DEAD, Dead, SegmentPlan, SegmentRows, write_rows
from cluster.storage.places import Place, list_files, remove
from pipelines.indexing.shards.build_shard import BATCH_ROWS
from pipelines.indexing.staging.drop_staging import drop_taken
from pipelines.indexing.staging.plan_build import folded_id
from pipelines.vocabulary.mine_vocabulary import merge_counts, read_counts, write_counts


def _rows(segments: Sequence[SegmentReader], chosen: Sequence[np.ndarray]) -> SegmentRows:
    """Return the citations at the `chosen` rows of each segment, merged in PMID order."""
    tables, spans, parts, tokens = [], [], [], []
    for segment, rows in zip(segments, chosen, strict=True):
        records = segment.records
        tables.append(records.table(rows))
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
        np.concatenate([parts[place] for place in order]),
        np.concatenate([tokens[place][0] for place in order]),
        b"".join(tokens[place][1].tobytes() for place in order),
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
    rows = [segment.live_rows() for segment in segments]
    owners = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    flat = np.concatenate(rows)
    pmids = np.concatenate([s.pmids[r] for s, r in zip(segments, rows, strict=True)])
    order = np.argsort(pmids)
    for begin in range(0, len(order), BATCH_ROWS):
        chunk = order[begin : begin + BATCH_ROWS]
        chosen = [np.sort(flat[chunk[owners[chunk] == n]]) for n in range(len(segments))]
        yield _rows(segments, chosen)


def compact_shard(
    index: Place,
    shard: int,
    before: ShardEntry,
    plan: SegmentPlan,
    codec: TokenCodec | None,
) -> SegmentEntry:
    """Merge the segments of `shard` into one and return its entry; a single segment is unchanged.

    Stored vectors and token codes are reused; nothing is encoded. Every checksum is verified first.
    Tombstones of deleted PMIDs are kept. A rerun reuses a complete merged segment. `plan.id` is not
    used: the new segment is named after the old ones. Raises IndexFormatError for an artefact that
    differs from the manifest.
    """
    if len(before.segments) == 1:
        return before.segments[0]
    plan = replace(plan, id=folded_id([s.id for s in before.segments]))
    reader = ShardReader(index, shard, before, ef_search=1, exact_below=0, codec=codec)

    def complete(directory: Path) -> Dead:
        deleted = deleted_pmids(read_supersedes(s.records.directory) for s in reader.segments)
        write_supersedes(Supersedes(deleted, np.ones(len(deleted), np.bool_)), directory)
        counts = merge_counts(
            read_counts(s.records.directory / TERM_COUNTS) for s in reader.segments
        )
        write_counts(counts, directory / TERM_COUNTS)
        return NONE_DEAD

    directory = index / segment_directory(shard, plan.id)
    return write_rows(_live_rows(reader.segments), directory, plan, complete)


def prune(index: Place, manifest: Manifest) -> list[str]:
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


def _stale_temporary_files(index: Place) -> list[str]:
    """Return temporary files of CURRENT and LEASE that killed writers left.

    These are the files that are older than a lease can be.
    """
    if not isinstance(index, Path):
        return []
    # The lease was just renewed, so its file shows the current time of this file system.
    now = (index / LEASE).stat().st_mtime
    found = (path for name in (CURRENT, LEASE) for path in index.glob(f".{name}.*"))
    return [path.name for path in found if now - path.stat().st_mtime > LEASE_S]
