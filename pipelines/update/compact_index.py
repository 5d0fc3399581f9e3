"""Compaction: the segments of a shard folded into one, and what no version needs removed."""

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
from pipelines.build.build_shard import BATCH_ROWS
from pipelines.build.drop_staging import drop_taken
from pipelines.build.plan_build import folded_id
from pipelines.vocabulary.mine_vocabulary import merge_counts, read_counts, write_counts


def _rows(segments: Sequence[SegmentReader], chosen: Sequence[np.ndarray]) -> SegmentRows:
    """The citations at `chosen` rows of each segment, together in PMID order."""
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
    """For each citation how many tokens its passages have, and their codes; `ends` part them."""
    stored = segment.opened.tokens
    if stored is None:
        counts, codes = np.zeros(len(passages), np.int64), np.empty((0, 0), np.uint8)
    else:
        codes, counts = stored.of(passages)
    before = np.append(0, np.cumsum(counts))[ends]
    return list(zip(np.split(counts, ends[1:-1]), np.split(codes, before[1:-1]), strict=True))


def _live_rows(segments: Sequence[SegmentReader]) -> Iterator[SegmentRows]:
    """The live citations of all segments in PMID order, some thousand at once."""
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
    """Fold the segments of `shard` into one and give its entry; one alone stays as it is.

    Stored vectors and codes of tokens are reused, nothing is encoded. Every checksum is verified
    first. What is deleted stays known. A rerun keeps a folded segment that is whole; `plan.id` is
    not used, the new segment is named after the old ones. Raises IndexFormatError for an
    artefact that is not as the manifest says.
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
    """Remove all versions but `manifest`, the published one, and the segments only they need.

    Gives what was removed, relative to the index. A reader that has an old version open
    keeps its mapped files until it closes them. Raises LeaseHeldError while another command
    changes the index, CiteRayError where it has published another version, and InputError
    while the staging of an interrupted run is there: its segments are in no version yet.
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
    # Versions first: interrupted, it leaves segments without a version, never the reverse.
    found = [f"versions/{name.split('/')[0]}" for name in list_files(index / "versions")]
    parts = [name.split("/") for name in list_files(index / "segments")]
    found += ["/".join(("segments", *part[:2])) for part in parts if len(part) > 1]
    removed = [name for name in dict.fromkeys(found) if name not in named_by(manifest)]
    removed += _asides(index)
    # Of what was listed nothing may be of a successor.
    lease.renew()
    for name in removed:
        lease.check()
        remove(index / name)
    return removed


def _asides(index: Place) -> list[str]:
    """What killed writers left of CURRENT and LEASE: files that no lease is old enough for."""
    if not isinstance(index, Path):
        return []
    # The lease was written a moment ago, by the clock of the same file system.
    now = (index / LEASE).stat().st_mtime
    found = (path for name in (CURRENT, LEASE) for path in index.glob(f".{name}.*"))
    return [path.name for path in found if now - path.stat().st_mtime > LEASE_S]
