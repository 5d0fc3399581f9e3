"""Ray tasks of the index jobs: those of the whole index and a task or two for each shard.

A graph is a task of its own, which has the threads and the GPU of the plan: postings, records and
filters need one CPU and take longer, so that a GPU would mostly wait for them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray

from cluster.errors import one_line
from cluster.index import vectors
from cluster.index.cagra import host_bytes
from cluster.index.layout import graph_file
from cluster.index.lease import Lease
from cluster.index.manifest import Artefact, Manifest, SegmentEntry, TermsEntry
from cluster.index.put_segment import remove_partials
from cluster.index.tokens.shared_codec import open_codec
from cluster.index.write_segment import SegmentPlan
from cluster.models.adapters import model_folder
from cluster.settings.settings import Settings
from cluster.storage.locations import Location, remove
from cluster.storage.object_store import File
from pipelines.indexing.publish_index import publish_terms, publish_vocabulary
from pipelines.indexing.published_build import Models
from pipelines.indexing.shards.build_shard import (
    ShardSummary,
    build_graph,
    build_shard,
    train_quantiser,
)
from pipelines.indexing.shards.compact_shard import (
    compact_graph,
    compact_shard,
    merge_tail,
    tail_to_merge,
)
from pipelines.indexing.shards.update_shard import ShardUpdate
from pipelines.indexing.staging.plan_build import Progress, Report, folded_id, staged_codec
from pipelines.indexing.staging.stage_citations import staged_ranges
from pipelines.indexing.staging.staging_tasks import learn_codec_of
from pipelines.vocabulary.give_names import find_names, given_names

LOGGER = logging.getLogger(__name__)


def _in_task(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return `work` as a function that runs in a Ray task instead of the driver."""
    task = ray.remote(max_retries=3)(work)
    return lambda *args: ray.get(task.remote(*args))


make_vocabulary: Callable[..., Artefact] = _in_task(publish_vocabulary)
make_terms: Callable[..., tuple[TermsEntry, ...]] = _in_task(publish_terms)


@ray.remote(max_retries=3)
def _shard_task(work: Callable[..., Any], args: Sequence[Any], graph: Any = None) -> Any:
    """Run `work`; the result of the task `graph` is only waited for."""
    return work(*args)


@ray.remote(max_retries=3)
def _graph_task(work: Callable[..., str], args: Sequence[Any]) -> str:
    return work(*args)


@ray.remote(max_retries=3)
def train_task(directories: Sequence[Location], path: Location, plan: SegmentPlan) -> int:
    """Ray task that writes the quantiser of the index, and returns the number of staged vectors.

    An existing quantiser is kept, because segments of an interrupted run were coded with it.
    """
    ranges, count = staged_ranges(directories, plan.dimensions)
    if not path.is_file():
        train_quantiser(ranges, path, plan)
    return count


def codec_for(
    build: str, sources: Sequence[File], settings: Settings, models: Models
) -> Location | None:
    """Return the token codec of `build`: that of an interrupted run, or a new one.

    Returns None if token vectors are not stored. A new codec is learned in a Ray task with the
    resources of an encoder, not in the driver.
    """
    index, coded, encoder = settings.index.location, settings.index.token_codec, settings.encoder
    if coded is None:
        return None
    found = staged_codec(index, build)
    if found is None:
        # An encoder actor reuses the process of this task, in which torch is already imported.
        gpus = encoder.gpus or None
        task = ray.remote(max_retries=3, num_cpus=1, num_gpus=gpus)(learn_codec_of)
        call = task.remote(sources, index, settings.split, encoder, coded, models.weights)
        found = ray.get(call)
    return found


@dataclass(frozen=True, slots=True)
class Graphs:
    """Work that writes the graph of a shard before its segment, with the arguments of each call.

    It returns why the CPU built the graph although the plan wants a GPU, or "". `rows` is the
    largest number of vectors of a graph.
    """

    work: Callable[..., str]
    calls: Sequence[tuple[Any, ...]]
    rows: int


def plan_here(plan: SegmentPlan) -> SegmentPlan:
    """Return `plan` with at most as many threads as a node has CPUs for a graph."""
    most = int(_largest("CPU", plan.gpus))
    return replace(plan, threads=min(plan.threads, most) if most else plan.threads)


def _largest(resource: str, gpus: float) -> float:
    """Return the largest amount of a resource on a node with `gpus` GPUs; 0 if there is no node."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return max((n.get(resource, 0.0) for n in nodes if n.get("GPU", 0.0) >= gpus), default=0.0)


def _graph_options(plan: SegmentPlan, rows: int) -> dict[str, Any]:
    """Return the resources of a task that writes a graph of `rows` vectors."""
    needed = vectors.hnsw_bytes(plan.vectors, rows, plan.dimensions, plan.hnsw_m)
    if plan.gpus:
        needed += host_bytes(rows, plan.dimensions, plan.hnsw_m)
    # Ray would wait forever for a node with more memory than any has.
    memory = max(min(needed, int(_largest("memory", plan.gpus)) or needed), 1)
    return {"num_cpus": plan.threads, "num_gpus": plan.gpus, "memory": memory}


def on_shards(
    work: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    plan: SegmentPlan,
    report: Report,
    graphs: Graphs | None = None,
) -> list[Any]:
    """Run `work` on each call, one per shard, as Ray tasks; return results in the order of `calls`.

    The first argument of each call is the index. Each task has one CPU and no GPU. With `graphs`,
    another task for each call, which has the threads and the GPU of `plan`, is finished before; a
    graph that the CPU had to build is logged. Partial files left by killed tasks are removed before
    and after.
    """
    index: Location = calls[0][0]
    remove_partials(index)
    before: list[Any] = [None] * len(calls)
    if graphs:
        task = _graph_task.options(**_graph_options(plan, graphs.rows))
        before = [task.remote(graphs.work, call) for call in graphs.calls]
    refs = [
        _shard_task.options(num_cpus=1).remote(work, call, graph)
        for call, graph in zip(calls, before, strict=True)
    ]
    shard_of = {ref: call[1] for ref, call in zip(before, calls, strict=True)} if graphs else {}
    waiting, done = [*shard_of, *refs], 0
    while waiting:
        (ended,), waiting = ray.wait(waiting, num_returns=1)
        if ended not in shard_of:
            done += 1
            report(Progress("index", done, len(refs), "shards"))
        elif reason := ray.get(ended):
            LOGGER.warning(
                "shard %d: the CPU built its graph: %s", shard_of[ended], one_line(reason)
            )
    results: list[Any] = ray.get(refs)
    remove_partials(index)
    return results


@ray.remote(max_retries=3)
def _find_models(settings: Settings) -> Models:
    model_folder(settings.encoder)
    # Read one name, so that a file in an unknown format fails now and not after embedding.
    next(given_names(find_names(settings.vocabulary)), None)
    return Models.of(settings)


def find_models(settings: Settings, report: Report) -> Models:
    """Return the checksums of the encoder and the files of names, which a worker fetches.

    Raises InputError if one of them cannot be fetched or has an unknown format.
    """
    report(Progress("models", 0, 1, "models"))
    found: Models = ray.get(_find_models.remote(settings))
    report(Progress("models", 1, 1, "models"))
    return found


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
