"""A plan as a values file of the Helm chart in k8s/: sizes of pods, the nodes they fit, settings.

What a pod asks for is the upper end of the plan's error bars, a fifth more at least; what a node
has is that, and what the kubelet and each node's own pods take.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from cluster.settings.settings import Settings, load_settings
from planning.emit import head_of, planned_settings
from planning.error_bar import Kind
from planning.place_workers import MODEL_DISK_BYTES, USABLE_MEMORY, WorkerGroup
from planning.plan import SERVING, Plan
from planning.units import gibibytes

GIB = 2.0**30
FILE_CITATIONS = 30_000
BASELINE_CITATIONS = 36_000_000
# Ray's own processes in a pod, 1.0 GiB in every build that was watched, and the agents that come
# later; the scratch space of logs and of what Ray spills.
RAYS_OWN_BYTES, SCRATCH_BYTES = 1.5 * GIB, 10 * GIB
# The error that a plan is held to: a check may have been luckier.
MARGIN = 1.2
# Of a node's cores what the kubelet and the pods of every node (logs, network, metrics) take.
KEPT_CPUS = 1.5
# Settings that the chart derives itself, and those that belong to where it runs.
DERIVED = ("index.path", "index.cache", "entrez.cache", "serve.batches.folder", "serve.saved")
NODE_CPUS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)


def chart_values(settings: Settings, plan: Plan, config: str = "laptop.yaml") -> dict[str, Any]:
    """The values `corpus`, `load`, `sizes`, `nodes` and `settings`; `config` is the settings' file.

    With one node everything is in one worker; else each group of the plan has its own pods.
    """
    ask, planned = plan.ask, planned_settings(settings, plan)
    whole = ask.citations >= BASELINE_CITATIONS
    files = 0 if whole else math.ceil(ask.citations / FILE_CITATIONS)
    sizes = _one_worker(planned, plan) if ask.nodes == 1 else _groups(planned, plan)
    sizes |= _builders(plan)
    return {
        "corpus": {"files": files, "updateFiles": files, "citations": ask.citations},
        "load": {"questionsPerSecond": ask.qps, "p95Seconds": ask.p95_s},
        "settings": {"over": config, **_changed(load_settings(config), planned)},
        "sizes": sizes,
        "nodes": _nodes(sizes, plan),
    }


def values_yaml(settings: Settings, plan: Plan, config: str = "laptop.yaml") -> str:
    """The values as YAML, under a comment with what was asked for."""
    return head_of(plan) + yaml.safe_dump(chart_values(settings, plan, config), sort_keys=False)


def _upper(plan: Plan, kind: Kind, value: float) -> float:
    """The most that `value` may really be, by the last check, and `MARGIN` above it at least."""
    bar = plan.error_bar
    return max(getattr(bar, kind).around(value)[1] if bar else value, MARGIN * value)


def _pod(
    plan: Plan, cores: float, process_bytes: float, disk_bytes: float, **more: Any
) -> dict[str, Any]:
    """A pod whose processes need so much; half a core a core less is requested up to 8 cores."""
    store = max(1.0, math.ceil(cores * 0.35)) if more.pop("moves_data", False) else 1.0
    memory = _upper(plan, "memory", process_bytes) + RAYS_OWN_BYTES + store * GIB
    asked = max(cores - KEPT_CPUS, 0.75 * cores)
    return {
        "cpu": math.floor(4 * asked) / 4,
        "cores": math.ceil(cores),
        "memory": gibibytes(memory),
        "objectStore": gibibytes(store * GIB),
        "disk": gibibytes(_upper(plan, "disk", disk_bytes) + SCRATCH_BYTES),
        **more,
    }


def _processes(group: WorkerGroup) -> float:
    return group.memory_bytes * USABLE_MEMORY


def _groups(planned: Settings, plan: Plan) -> dict[str, Any]:
    """A kind of pod for each group; autoscaling may add what the settings' most replicas need."""
    sizes = {"head": _head(plan, 4 if len(plan.groups) > 2 else 1)}
    for group in plan.groups:
        if group.name not in SERVING:
            continue
        llm = group.name == "llm"
        shared = 16 * GIB if llm and group.gpus else 0.0
        sizes[group.name] = _pod(
            plan, group.cpus, group.memory_bytes + shared if llm else _processes(group),
            0.0 if llm or group.name == "models" else group.disk_bytes,
            replicas=group.nodes, maxReplicas=max(_most(planned, plan, group), group.nodes),
            modelDisk=gibibytes(group.disk_bytes if llm else MODEL_DISK_BYTES / 2),
            gpu=math.ceil(group.gpus),
        )  # fmt: skip
        if llm:
            sizes["llm"] |= {"sharedMemory": gibibytes(shared)} if shared else {}
            sizes["llm"]["accelerator"] = planned.llm.accelerator
    return sizes


def _most(planned: Settings, plan: Plan, group: WorkerGroup) -> int:
    """How many pods the stages' most replicas need."""
    serve = planned.serve
    if group.name == "retrieval":
        shards = plan.size.shards * serve.shard.max_replicas
        return math.ceil(shards / max(group.cpus, 1))
    if group.name == "llm":
        return math.ceil(group.nodes * serve.llm.max_replicas / serve.llm.min_replicas)
    stages = [serve.expander, serve.encoder, serve.writer]
    stages += [serve.reranker] if plan.serving.stage("reranker") else []
    gpus = sum(s.max_replicas * s.gpus for s in stages) / max(group.gpus, 1)
    cpus = sum(s.max_replicas * s.cpus for s in [*stages, serve.gateway]) / max(group.cpus, 1)
    gateways = serve.gateway.max_replicas / (serve.gateway.per_node or serve.gateway.max_replicas)
    return math.ceil(max(gpus, cpus, gateways))


def _one_worker(planned: Settings, plan: Plan) -> dict[str, Any]:
    """Every stage in one worker on the one node."""
    served = [g for g in plan.groups if g.name in SERVING]
    memory = sum(g.nodes * (g.memory_bytes if g.name == "llm" else _processes(g)) for g in served)
    stages = [getattr(planned.serve, s) for s in
              ("gateway", "expander", "encoder", "shard", "reranker", "writer")]  # fmt: skip
    cores = sum(s.min_replicas * s.cpus for s in stages) + planned.serve.shard.cpus * (
        plan.size.shards - 1
    )
    cores += sum(g.cpus for g in served if g.name == "llm")
    gpus = sum(s.min_replicas * s.gpus for s in stages) + sum(
        planned.serve.llm.gpus for g in served if g.name == "llm"
    )
    models = sum(g.disk_bytes for g in served if g.name == "llm") + MODEL_DISK_BYTES / 2
    worker = _pod(
        plan, max(math.ceil(cores), 4), memory,
        sum(g.disk_bytes for g in served if g.name == "retrieval"),
        replicas=1, maxReplicas=1, modelDisk=gibibytes(models), gpu=math.ceil(gpus),
    )  # fmt: skip
    return {"head": _head(plan, 1), "models": worker}


def _head(plan: Plan, cores: int) -> dict[str, Any]:
    """A head or a driver: nothing runs there but Ray's own and the job's process."""
    driver = next(f.value for f in plan.memory if f.name == "driver")
    return _pod(plan, cores, 2 * driver + cores * GIB, 0.0)


def _builders(plan: Plan) -> dict[str, Any]:
    """Pods of the build and of the daily update, with their heads."""
    group = next(g for g in plan.groups if g.name == "build")
    alone = plan.ask.nodes == 1
    shared = {
        "moves_data": True,
        "gpu": math.ceil(group.gpus),
        "modelDisk": gibibytes(MODEL_DISK_BYTES / 4),
    }
    replicas = {"replicas": group.nodes, "maxReplicas": group.nodes}
    build = _pod(plan, group.cpus, _processes(group), group.disk_bytes, **shared, **replicas)
    one = {**shared, "replicas": 1, "maxReplicas": 1}
    update = {**build, "replicas": 1, "maxReplicas": 1}
    if alone:
        # Beside the service, on two cores and no GPU.
        needed = {f.name: f.value for f in plan.memory}
        workers = needed["encode worker"] + 2 * max(needed["read worker"], needed["driver"])
        memory = max(workers, needed["vocabulary task"], 2 * needed["shard task"])
        update = _pod(plan, 2, memory, group.disk_bytes, **{**one, "gpu": 0})
    head = _head(plan, 1 if alone else 4)
    return {"build": build, "buildHead": head, "update": update, "updateHead": _head(plan, 1)}


def _nodes(sizes: Mapping[str, Any], plan: Plan) -> list[dict[str, Any]]:
    """The nodes that the pods fit, each kind of worker on its own, heads and Redis on another."""
    system = ("head", "buildHead", "updateHead", "fillModels", "submitter", "redis")
    kinds = [k for k in ("retrieval", "models", "llm", "build", "update") if k in sizes]
    if plan.ask.nodes == 1:
        # A build and the service take turns; an update runs beside the service.
        beside = [k for k in ("head", "models", "update", "updateHead") if k in sizes]
        taking_turns = [sizes["build"], sizes["buildHead"]]
        node = _node("all", 1, [sizes[k] for k in beside], (*system, *kinds))
        other = _node("all", 1, taking_turns, (*system, *kinds))
        wider = {key: max(node[key], other[key]) for key in ("cpu", "gpu")}
        larger = {key: max(node[key], other[key], key=lambda q: int(q[:-2]))
                  for key in ("memory", "disk")}  # fmt: skip
        return [{**node, **wider, **larger}]
    heads = [sizes[k] for k in ("head", "buildHead", "updateHead")]
    found = [_node("general", 2, heads, system)]
    for kind in kinds[:-1]:
        shared = ("build", "update") if kind == "build" else (kind,)
        count = sizes[kind]["replicas"] + (kind == "build")
        found.append(_node(kind, count, [sizes[kind]], shared))
    return found


def _node(
    name: str, count: int, pods: Iterable[Mapping[str, Any]], kinds: Iterable[str]
) -> dict[str, Any]:
    """The least node of usual sizes that holds `pods` beside what the system keeps."""
    pods = list(pods)
    # Autoscalers, Redis and submitters are small; images of both kinds lie on the disk.
    small = 1.0 if len(pods) > 1 else 0.0
    cpus = sum(p["cpu"] for p in pods) + small + 1.0
    memory = sum(_gib(p["memory"]) for p in pods) + 2 * small + 1.5
    disk = sum(_gib(p["disk"]) + _gib(p.get("modelDisk", "0Gi")) for p in pods) + 25 + 5 * small
    return {
        "name": name,
        "count": count,
        "cpu": next((n for n in NODE_CPUS if n >= cpus), math.ceil(cpus)),
        "memory": f"{next(m for m in _doubling(8) if m - kept_memory(m) >= memory)}Gi",
        "disk": f"{next(d for d in range(50, 1 << 20, 50) if d - kept_disk(d) >= disk)}Gi",
        "gpu": max(p.get("gpu", 0) for p in pods),
        "for": list(dict.fromkeys(kinds)),
    }


def _gib(quantity: str) -> int:
    return int(quantity.removesuffix("Gi"))


def _doubling(first: int) -> Iterable[int]:
    size = first
    while True:
        yield size
        yield size + size // 2
        size *= 2


def kept_memory(gib: float) -> float:
    """GiB of a node's memory that GKE keeps: a share by steps, and what it evicts pods for."""
    steps = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (math.inf, 0.02))
    kept, left = 0.1, gib
    for size, share in steps:
        kept += share * min(left, size)
        left -= min(left, size)
    return kept


def kept_disk(gib: float) -> float:
    """GiB of a node's boot disk that GKE keeps: for eviction, for the system and its images."""
    return 0.1 * gib + min(0.5 * gib, 6 + 0.35 * gib, 100.0)


def _changed(before: Settings, planned: Settings) -> dict[str, Any]:
    """The settings in `planned` that differ, without those that the chart derives."""
    return _difference(before.model_dump(mode="json"), planned.model_dump(mode="json"), "")


def _difference(before: Mapping[str, Any], after: Mapping[str, Any], at: str) -> dict[str, Any]:
    found = {}
    for key, value in after.items():
        place = f"{at}{key}"
        if place in DERIVED or key == "pool":
            continue
        if isinstance(value, dict) and isinstance(before.get(key), dict):
            if inner := _difference(before[key], value, f"{place}."):
                found[key] = inner
        elif value != before.get(key):
            found[key] = value
    return found
