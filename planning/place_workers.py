"""Assign replicas to nodes: groups of workers that serve, and the machines of a build."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cluster.settings.settings import Settings
from planning.estimate_build import Fleet, Size, copied_bytes, on_gpus, replica_memory
from planning.estimate_serving import ServedModel, ServingPlan, served_models
from planning.figures import Figure
from planning.measure.coefficients import Coefficients

# Share of a node's memory for processes; the system, Ray and its object store use the rest.
USABLE_MEMORY = 0.8
# Assumed bytes, because no machine with a GPU was measured: weights on disk, and host memory of a
# process that uses a GPU, for small models and for a language model's engine ("_A_GPU": per GPU).
MODEL_DISK_BYTES, LLM_DISK_A_GPU = 20e9, 50e9
GPU_PROCESS_BYTES = 4 * 2.0**30
LLM_MEMORY, LLM_MEMORY_A_GPU = 8 * 2.0**30, 32 * 2.0**30


@dataclass(frozen=True, slots=True)
class Ask:
    """The corpus and load to plan for, and the nodes to use.

    If `nodes` is None, serving determines their number. If `shards` is None, the fewest that
    suffice are used. Without a `node_price`, no cost is computed. `prices_of` is the day of the
    prices, `reply_s` the median reply time in seconds of a language model that was not measured.
    `gpu_memory` is the memory in bytes of each GPU that builds, if it was not measured.
    """

    citations: int
    qps: float
    p95_s: float
    path: str = "search"
    node_memory: int = 64_000_000_000
    node_cpus: int = 16
    nodes: int | None = None
    gpu_nodes: int = 0
    gpus_per_node: int = 1
    gpu_memory: int | None = None
    changed: int = 30_000
    shards: int | None = None
    node_price: float | None = None
    gpu_price: float | None = None
    prices_of: str = ""
    reply_s: float | None = None


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """Nodes of one kind. Resources are per node: those of Ray's workers, and the local disk."""

    name: str
    nodes: int
    cpus: float
    memory_bytes: float
    gpus: float
    disk_bytes: float
    holds: str


def serving_groups(
    found: Coefficients, settings: Settings, size: Size, serving: ServingPlan, ask: Ask
) -> list[WorkerGroup]:
    """Return the node groups for shards, small models, and language models.

    The group "judge" is needed only by `citeray evaluate` and `citeray ablate`.
    """
    groups = [
        _retrieval(found, settings, size, serving, ask),
        _models(found, settings, serving, ask),
    ]
    for name, judge in (("llm", False), ("judge", True)):
        models = served_models(settings, judge=judge)
        if models:
            groups.append(_language_models(name, models, serving, ask))
    return groups


def _language_models(
    name: str, models: Sequence[ServedModel], serving: ServingPlan, ask: Ask
) -> WorkerGroup:
    """Return nodes that each hold a replica of the largest model or of several smaller ones."""
    replicas = {}
    for m in models:
        stage = serving.stage(m.name)
        replicas[m.name] = stage.replicas if stage else m.stage.min_replicas
    every = [m for m in models for _ in range(replicas[m.name])]
    gpus = math.ceil(max(m.gpus for m in models))
    cpus = max(m.cpus for m in models)
    nodes = max(
        count_pods([m.gpus for m in every], gpus) if gpus else 1,
        count_pods([m.cpus for m in every], max(float(ask.node_cpus), cpus)),
    )
    cores = math.ceil(max(cpus, sum(m.cpus for m in every) / nodes))
    used = sum(m.gpus for m in every) / nodes
    memory, disk = LLM_MEMORY + used * LLM_MEMORY_A_GPU, used * LLM_DISK_A_GPU or MODEL_DISK_BYTES
    holds = ", ".join(f"{count} {model}" for model, count in replicas.items())
    return WorkerGroup(name, nodes, cores, memory, gpus, disk, holds)


def count_pods(wanted: Sequence[float], room: float) -> int:
    """Return the number of pods of size `room` that hold all of `wanted`, by first fit."""
    pods: list[float] = []
    for size in sorted(wanted, reverse=True):
        fitting = next((n for n, left in enumerate(pods) if left + 1e-9 >= size), None)
        if fitting is None:
            pods.append(room - size)
        else:
            pods[fitting] -= size
    return len(pods)


def _spread(replicas: int, per_node: int) -> int:
    """Return the number of nodes for at most `per_node` replicas on each; 0 means no limit."""
    return math.ceil(replicas / per_node) if per_node else 1


def _retrieval(
    found: Coefficients, settings: Settings, size: Size, serving: ServingPlan, ask: Ask
) -> WorkerGroup:
    memory = replica_memory(found, size).value
    shard = serving.stage("shard")
    each = shard.replicas if shard else 1
    replicas = size.shards * each
    fitting = int(USABLE_MEMORY * ask.node_memory / memory)
    nodes = max(
        math.ceil(replicas / max(min(fitting, ask.node_cpus), 1)),
        _spread(each, settings.serve.shard.per_node),
    )
    here = math.ceil(replicas / nodes)
    # Each node keeps verified copies of its shards, for the current and the next version.
    disk = 2 * here * copied_bytes(found, size)
    holds = f"{replicas} shard replicas, {here} a node"
    return WorkerGroup("retrieval", nodes, here, here * memory / USABLE_MEMORY, 0, disk, holds)


def _models(found: Coefficients, settings: Settings, serving: ServingPlan, ask: Ask) -> WorkerGroup:
    stages = [
        (s.name, s.replicas, s.cpus, s.gpus)
        for s in serving.stages
        if s.name != "shard" and not s.name.startswith("llm")
    ]
    writer = settings.serve.writer
    if serving.stage("writer") is None:
        stages.append(("writer", writer.min_replicas, max(writer.cpus, 1.0), writer.gpus))
    cpus = sum(replicas * cpus for _, replicas, cpus, _ in stages)
    gpus = sum(replicas * gpus for _, replicas, _, gpus in stages)
    own = found.memory
    memory = sum(
        replicas * (GPU_PROCESS_BYTES if gpus else
                    own.driver_bytes if name == "gateway" else own.encode_worker_bytes)
        for name, replicas, _, gpus in stages
    )  # fmt: skip
    spread = [(count, getattr(settings.serve, name).per_node) for name, count, _, _ in stages]
    nodes = max(
        math.ceil(cpus / ask.node_cpus),
        math.ceil(memory / (USABLE_MEMORY * ask.node_memory)),
        math.ceil(gpus / ask.gpus_per_node),
        *(_spread(count, per_node) for count, per_node in spread),
    )
    holds = ", ".join(f"{count} {name}" for name, count, _, _ in stages)
    # Replicas are placed by GPU first, so their cores may be distributed unevenly.
    cores = math.ceil(cpus / nodes * (1.5 if gpus and nodes > 1 else 1.0))
    return WorkerGroup(
        "models", nodes, cores, memory / nodes / USABLE_MEMORY,
        math.ceil(gpus / nodes), MODEL_DISK_BYTES, holds,
    )  # fmt: skip


def shard_tasks_a_node(settings: Settings, ask: Ask) -> int:
    """Return how many shards a node builds at the same time: one per core or GPU share."""
    share = settings.index.build_gpus
    places = ask.gpus_per_node * int(1 / share + 1e-9) if share else ask.node_cpus
    return max(min(places, ask.node_cpus), 1)


def fleet_for(found: Coefficients, settings: Settings, size: Size, ask: Ask, nodes: int) -> Fleet:
    """Return the resources of a build on `nodes` nodes, with at least one encoder.

    Encoders use GPUs if the settings say so. Their time is known only if it was measured on the
    same kind of device.
    """
    index, encoder, gpu = settings.index, settings.encoder, found.gpu
    cpus = nodes * ask.node_cpus
    gpus = ask.gpu_nodes * ask.gpus_per_node if encoder.gpus or index.build_gpus else 0
    seconds, threads = found.building.encode_seconds_per_passage, found.encoder_threads
    if encoder.gpus and gpu:
        tokens, stored = found.corpus.tokens_per_passage, index.token_codec is not None
        seconds = gpu.encode_seconds(tokens, encoder.batch_size, store_tokens=stored)
    elif bool(encoder.gpus) != (found.machine.device != "cpu"):
        seconds = math.nan
    rate = (gpu.graph_vectors_per_s if gpu else None) or math.nan
    builders = ask.gpu_nodes if index.build_gpus else nodes
    return Fleet(
        nodes, cpus, gpus, max(gpus if encoder.gpus else cpus // threads, 1), seconds,
        1 if encoder.gpus else threads, index.build_threads,
        max(builders, 1) * shard_tasks_a_node(settings, ask),
        1 / rate if on_gpus(index, size) else 0.0,
    )  # fmt: skip


def build_group(
    processes: Sequence[Figure], fleet: Fleet, ask: Ask, disk: float, shards: int
) -> WorkerGroup:
    """Return the nodes of a build; each builds `fleet.shard_tasks / fleet.nodes` shards at once.

    `processes` are peak memory figures, `disk` the bytes of the index store.
    """
    named = {f.name: f.value for f in processes}
    a_node = fleet.cpus / fleet.nodes
    encoder = max(named["encode worker"], GPU_PROCESS_BYTES if fleet.gpus else 0.0)
    workers = fleet.encoders / fleet.nodes * encoder
    workers += a_node * named["read worker"]
    building = min(shards, math.ceil(fleet.shard_tasks / fleet.nodes)) * named["shard task"]
    memory = max(workers, building, named["vocabulary task"]) + named["driver"]
    return WorkerGroup(
        "build", fleet.nodes, ask.node_cpus, memory / USABLE_MEMORY,
        fleet.gpus / fleet.nodes, disk / fleet.nodes,
        f"{fleet.encoders} encoders, then a task a shard",
    )  # fmt: skip
