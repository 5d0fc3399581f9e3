"""Which nodes hold what: groups of workers, and the fleet that builds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cluster.settings.settings import Settings
from planning.estimate_build import Fleet, Size, replica_memory, shard_bytes
from planning.estimate_serving import ServingPlan
from planning.figures import Figure
from planning.measure.coefficients import Coefficients

# The rest is the system's, Ray's and its object store's.
USABLE_MEMORY = 0.8
MODEL_DISK_BYTES, LLM_DISK_BYTES = 20e9, 200e9


@dataclass(frozen=True, slots=True)
class Ask:
    """What is wanted, and what a node has. `nodes` None: as many as serving needs; prices
    None: no cost is told; `shards` None: chosen.
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
    changed: int = 30_000
    shards: int | None = None
    node_price: float | None = None
    gpu_price: float | None = None


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """Nodes of one kind: what each has for Ray's workers, and its local disk, in bytes."""

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
    """Groups of nodes that serving needs: shards, models, and a language model run by CiteRay."""
    groups = [_retrieval(found, size, serving, ask), _models(found, settings, serving, ask)]
    llm = serving.stage("llm")
    if llm is None or settings.llm.kind != "vllm":
        return groups
    a_node = max(int(ask.gpus_per_node / llm.gpus), 1) if llm.gpus else 1
    nodes, gpus = math.ceil(llm.replicas / a_node), math.ceil(llm.gpus * a_node)
    holds = f"{llm.replicas} language models"
    cpus = llm.cpus * a_node
    return [
        *groups,
        WorkerGroup("llm", nodes, cpus, ask.node_memory, gpus, LLM_DISK_BYTES, holds),
    ]


def _retrieval(found: Coefficients, size: Size, serving: ServingPlan, ask: Ask) -> WorkerGroup:
    memory = replica_memory(found, size).value
    shard = serving.stage("shard")
    replicas = size.shards * (shard.replicas if shard else 1)
    fitting = int(USABLE_MEMORY * ask.node_memory / memory)
    nodes = math.ceil(replicas / max(min(fitting, ask.node_cpus), 1))
    here = math.ceil(replicas / nodes)
    # A verified copy of its shards, and of the next version's beside them.
    disk = 2 * here * shard_bytes(found, size)
    holds = f"{replicas} shard replicas, {here} a node"
    return WorkerGroup("retrieval", nodes, here, here * memory / USABLE_MEMORY, 0, disk, holds)


def _models(found: Coefficients, settings: Settings, serving: ServingPlan, ask: Ask) -> WorkerGroup:
    stages = [s for s in serving.stages if s.name not in ("shard", "llm")]
    gateways = settings.serve.gateway.min_replicas
    cpus = sum(s.replicas * s.cpus for s in stages) + gateways
    gpus = sum(s.replicas * s.gpus for s in stages)
    memory = gateways * found.memory.driver_bytes
    memory += sum(s.replicas for s in stages) * found.memory.encode_worker_bytes
    nodes = max(
        math.ceil(cpus / ask.node_cpus),
        math.ceil(memory / (USABLE_MEMORY * ask.node_memory)),
        math.ceil(gpus / ask.gpus_per_node),
    )
    holds = ", ".join([f"{gateways} gateway", *(f"{s.replicas} {s.name}" for s in stages)])
    return WorkerGroup(
        "models", nodes, math.ceil(cpus / nodes), memory / nodes / USABLE_MEMORY,
        math.ceil(gpus / nodes), MODEL_DISK_BYTES, holds,
    )  # fmt: skip


def fleet_for(found: Coefficients, settings: Settings, ask: Ask, nodes: int) -> Fleet:
    """The fleet of `nodes` that builds: cores and GPUs in all, and encoders at once, 1 or more."""
    cpus, gpus = nodes * ask.node_cpus, ask.gpu_nodes * ask.gpus_per_node
    at_once = cpus // found.encoder_threads if found.machine.device == "cpu" else gpus
    index = settings.index
    return Fleet(nodes, cpus, gpus, max(at_once, 1), index.build_threads, index.training_vectors)


def build_group(processes: Sequence[Figure], fleet: Fleet, ask: Ask, disk: float) -> WorkerGroup:
    """`processes` are the peaks of a build's, `disk` the bytes of the index store."""
    named = {f.name: f.value for f in processes}
    a_node = fleet.cpus / fleet.nodes
    workers = fleet.encoders / fleet.nodes * named["encode worker"]
    workers += a_node * named["read worker"]
    alone = (named[f"{task} task"] for task in ("shard", "sample", "vocabulary"))
    memory = max(workers, *alone) + named["driver"]
    return WorkerGroup(
        "build", fleet.nodes, ask.node_cpus, memory / USABLE_MEMORY,
        fleet.gpus / fleet.nodes, disk / fleet.nodes,
        f"{fleet.encoders} encoders, then a task a shard",
    )  # fmt: skip
