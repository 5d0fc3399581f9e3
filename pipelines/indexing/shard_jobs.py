"""Build, merge and compact the segments of all shards, with a task or two for each shard.

A graph is a task of its own, which has the threads and the GPU of the plan: postings, records and
filters need one CPU and take longer, so that a GPU would mostly wait for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cluster.index.layout import graph_file
from cluster.index.lease import Lease
from cluster.index.manifest import Manifest, SegmentEntry
from cluster.index.tokens.shared_codec import open_codec
from cluster.index.write_segment import SegmentPlan
from cluster.storage.locations import Location, remove
from pipelines.indexing.index_tasks import Graphs, on_shards
from pipelines.indexing.shards.build_shard import ShardSummary, build_graph, build_shard
from pipelines.indexing.shards.compact_shard import (
    compact_graph,
    compact_shard,
    merge_tail,
    tail_to_merge,
)
from pipelines.indexing.shards.update_shard import ShardUpdate
from pipelines.indexing.staging.plan_build import Report, folded_id

# The largest shard has at most this many times the vectors of the average one.
UNEVEN = 1.1


def build_shards(
    lease: Lease,
    directories: Sequence[Location],
    plan: SegmentPlan,
    vectors: int,
    shards: int,
    report: Report,
) -> list[ShardSummary]:
    """Build the segment of each shard from the staged sources; `vectors` is their number."""
    index = lease.index
    calls = [(index, shard, directories, plan) for shard in range(shards)]
    paths = [index / graph_file(shard, plan.id) for shard in range(shards)]
    with_graphs = [(*call, path) for call, path in zip(calls, paths, strict=True)]
    graphs = Graphs(build_graph, calls, math.ceil(vectors / shards * UNEVEN))
    summaries = on_shards(build_shard, with_graphs, plan, report, graphs)
    _remove_graphs(lease, paths)
    return summaries


def _remove_graphs(lease: Lease, paths: Sequence[Location]) -> None:
    """Remove graphs that are in segments now; those of a killed run stay until `prune`."""
    lease.check()
    for path in paths:
        remove(path)


def with_merged_tails(
    index: Location,
    manifest: Manifest,
    updates: Sequence[ShardUpdate | None],
    plan: SegmentPlan,
    report: Report,
) -> Manifest:
    """Return `manifest` with fewer segments in shards that get one more, and the same content."""
    codec = open_codec(index, manifest.tokens)
    calls = [
        (index, n, shard, count, plan, codec)
        for n, (shard, update) in enumerate(zip(manifest.shards, updates, strict=True))
        if update
        and (count := tail_to_merge([s.citations for s in shard.segments], update.entry.citations))
    ]
    if not calls:
        return manifest
    shards = list(manifest.shards)
    for (_, n, *_), merged in zip(calls, on_shards(merge_tail, calls, plan, report), strict=True):
        shards[n] = merged
    return manifest.model_copy(update={"shards": tuple(shards)})


def compact_shards(
    lease: Lease, manifest: Manifest, plan: SegmentPlan, report: Report
) -> list[SegmentEntry]:
    """Return the only segment of each shard, after merging the segments of those with several."""
    index, codec = lease.index, open_codec(lease.index, manifest.tokens)
    several = [(n, s) for n, s in enumerate(manifest.shards) if len(s.segments) > 1]
    entries = [shard.segments[0] for shard in manifest.shards]
    if not several:
        return entries
    paths = [
        index / graph_file(n, folded_id([segment.id for segment in shard.segments]))
        for n, shard in several
    ]
    calls = [(index, n, shard, plan) for n, shard in several]
    graphs = Graphs(compact_graph, calls, max(shard.units("passages") for _, shard in several))
    with_graphs = [(*call, codec, path) for call, path in zip(calls, paths, strict=True)]
    merged = on_shards(compact_shard, with_graphs, plan, report, graphs)
    _remove_graphs(lease, paths)
    for (n, _), entry in zip(several, merged, strict=True):
        entries[n] = entry
    return entries
