"""Convert a plan to values of the Helm chart in k8s/: pod sizes, node sizes and settings.

Each pod requests 20% more than planned. Each node has room for its pods, the kubelet and the system
pods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from cluster.settings.settings import Settings, load_settings
from planning.emit import header_comment, planned_settings
from planning.place_workers import MODEL_DISK_BYTES, USABLE_MEMORY, WorkerGroup
from planning.plan import SERVING, Plan
from planning.units import gibibytes

GIB = 2.0**30
FILE_CITATIONS = 30_000
BASELINE_CITATIONS = 36_000_000
# Memory of Ray's own processes in a pod, and disk for logs and spilled objects.
RAYS_OWN_BYTES, SCRATCH_BYTES = 1.5 * GIB, 10 * GIB
# Margin above a planned figure.
MARGIN = 1.2
# Cores of a node that the kubelet and its system pods (logs, network, metrics) take.
RESERVED_CPUS = 1.5
# Settings that the chart derives itself, or that depend on where it is installed.
DERIVED = ("index.path", "index.cache", "entrez.cache", "serve.batches.folder", "serve.saved")
NODE_CPUS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)


def chart_values(settings: Settings, plan: Plan, config: str = "laptop.yaml") -> dict[str, Any]:
    """Return the values `corpus`, `load`, `sizes`, `nodes` and `settings`.

    `config` is the file of the settings. With one node everything runs in one worker pod; otherwise
    each group of the plan has its own pods.
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
    """Return the values as YAML, with the request in a comment above."""
    values = chart_values(settings, plan, config)
    return header_comment(plan) + yaml.safe_dump(values, sort_keys=False)


def _pod(cores: float, process_bytes: float, disk_bytes: float, **more: Any) -> dict[str, Any]:
    """Return the requests of a pod that uses `cores` cores, less the part for system pods."""
    store = max(1.0, math.ceil(cores * 0.35)) if more.pop("moves_data", False) else 1.0
    memory = MARGIN * process_bytes + RAYS_OWN_BYTES + store * GIB
    asked = max(cores - RESERVED_CPUS, 0.75 * cores)
    return {
        "cpu": math.floor(4 * asked) / 4,
        "cores": math.ceil(cores),
        "memory": gibibytes(memory),
        "objectStore": gibibytes(store * GIB),
        "disk": gibibytes(MARGIN * disk_bytes + SCRATCH_BYTES),
        **more,
    }


def _processes(group: WorkerGroup) -> float:
    return group.memory_bytes * USABLE_MEMORY


def _groups(planned: Settings, plan: Plan) -> dict[str, Any]:
    """Return the pods of each group; their maximum number is enough for `max_replicas`."""
    sizes = {"head": _head(plan, 4 if len(plan.groups) > 2 else 1)}
    for group in plan.groups:
        if group.name not in SERVING:
            continue
        llm = group.name == "llm"
        shared = 16 * GIB if llm and group.gpus else 0.0
        sizes[group.name] = _pod(
            group.cpus, group.memory_bytes + shared if llm else _processes(group),
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
    """Return the number of pods with room for the `max_replicas` of the group's stages."""
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
    """Return one worker pod that runs every stage."""
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
        max(math.ceil(cores), 4), memory,
        sum(g.disk_bytes for g in served if g.name == "retrieval"),
        replicas=1, maxReplicas=1, modelDisk=gibibytes(models), gpu=math.ceil(gpus),
    )  # fmt: skip
    return {"head": _head(plan, 1), "models": worker}


def _head(plan: Plan, cores: int) -> dict[str, Any]:
    """Return the pod of a head node, which runs only Ray's processes and the driver."""
    driver = next(f.value for f in plan.memory if f.name == "driver")
    return _pod(cores, 2 * driver + cores * GIB, 0.0)


def _builders(plan: Plan) -> dict[str, Any]:
    """Return the pods of the build and of the daily update, with their heads."""
    group = next(g for g in plan.groups if g.name == "build")
    alone = plan.ask.nodes == 1
    shared = {
        "moves_data": True,
        "gpu": math.ceil(group.gpus),
        "modelDisk": gibibytes(MODEL_DISK_BYTES / 4),
    }
    replicas = {"replicas": group.nodes, "maxReplicas": group.nodes}
    build = _pod(group.cpus, _processes(group), group.disk_bytes, **shared, **replicas)
    one = {**shared, "replicas": 1, "maxReplicas": 1}
    update = {**build, "replicas": 1, "maxReplicas": 1}
    if alone:
        # The update shares the node with the service, so it gets two cores and no GPU.
        needed = {f.name: f.value for f in plan.memory}
        workers = needed["encode worker"] + 2 * max(needed["read worker"], needed["driver"])
        memory = max(workers, needed["vocabulary task"], 2 * needed["shard task"])
        update = _pod(2, memory, group.disk_bytes, **{**one, "gpu": 0})
    head = _head(plan, 1 if alone else 4)
    return {"build": build, "buildHead": head, "update": update, "updateHead": _head(plan, 1)}


def _nodes(sizes: Mapping[str, Any], plan: Plan) -> list[dict[str, Any]]:
    """Return node groups: one per kind of worker, and one for heads and Redis."""
    system = ("head", "buildHead", "updateHead", "fillModels", "submitter", "redis")
    kinds = [k for k in ("retrieval", "models", "llm", "build", "update") if k in sizes]
    if plan.ask.nodes == 1:
        # A build and the service use a node at different times; an update runs next to the service.
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
    """Return the smallest common node size that holds `pods` and the system's reservations."""
    pods = list(pods)
    # Autoscalers, Redis and submitters need one core; the disk also holds the images.
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
    """Return the GiB of a node's memory that GKE reserves, including the eviction threshold."""
    steps = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (math.inf, 0.02))
    kept, left = 0.1, gib
    for size, share in steps:
        kept += share * min(left, size)
        left -= min(left, size)
    return kept


def kept_disk(gib: float) -> float:
    """Return the GiB of a node's boot disk that GKE reserves for eviction and the system."""
    return 0.1 * gib + min(0.5 * gib, 6 + 0.35 * gib, 100.0)


def _changed(before: Settings, planned: Settings) -> dict[str, Any]:
    """Return the settings that differ, except those that the chart derives."""
    return _difference(before.model_dump(mode="json"), planned.model_dump(mode="json"), "")


def _difference(before: Mapping[str, Any], after: Mapping[str, Any], at: str) -> dict[str, Any]:
    found = {}
    for key, value in after.items():
        where = f"{at}{key}"
        if where in DERIVED or key == "pool":
            continue
        if isinstance(value, dict) and isinstance(before.get(key), dict):
            if inner := _difference(before[key], value, f"{where}."):
                found[key] = inner
        elif value != before.get(key):
            found[key] = value
    return found
