"""Pods fit the nodes that the values state, and replicas of the service fit its pods.

That the values of the presets are those of `citeray plan` is checked by
tests/planning/test_chart_values.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.settings.settings import load_settings
from planning.chart_values import kept_disk, kept_memory
from serve.llm_app import placement_bundles
from tests.k8s.chart import (
    CASES,
    SIZES,
    Object,
    all_values,
    cluster_spec,
    cores,
    gibibytes,
    groups,
    of_kind,
    pod_templates,
    rendered,
    settings_text,
)
from tests.k8s.test_pods import size_of

pytestmark = pytest.mark.model

Resources = dict[str, float]
# Requests of the DaemonSets of a usual cluster, and the cores that GKE reserves of 16.
DAEMONS = {"cpu": 0.6, "memory": 1.0, "disk": 1.0}
KEPT_CORES = 0.11


def requested(pod: dict[str, Any], autoscaler: dict[str, Any] | None) -> Resources:
    """Return the larger of the sum over all containers and of each init container."""
    running = [c["resources"]["requests"] for c in pod["containers"]]
    running += [autoscaler] if autoscaler else []
    starting = [c["resources"]["requests"] for c in pod.get("initContainers", [])]

    def total(what: str, number: Callable[[str], float]) -> float:
        amounts = [sum(number(asked[what]) for asked in running if what in asked)]
        return max(amounts + [number(asked[what]) for asked in starting if what in asked])

    return {
        "cpu": total("cpu", cores),
        "memory": total("memory", gibibytes),
        "disk": total("ephemeral-storage", gibibytes),
        "GPU": total("nvidia.com/gpu", float),
    }


def pods_of(obj: Object) -> list[tuple[str, Resources]]:
    """Return each pod that an object leads to, by its key in `sizes`."""
    found = []
    for place, template in pod_templates(obj).items():
        kind = "submitter" if place.startswith("CronJob") else size_of(place)
        count, autoscaler = 1, None
        if obj["kind"] in ("RayService", "RayJob"):
            count = groups(obj)[kind]["replicas"] if kind in groups(obj) else 1
            options = cluster_spec(obj).get("autoscalerOptions")
            autoscaler = options["resources"]["requests"] if options and kind == "head" else None
        found += [(kind, requested(template["spec"], autoscaler))] * count
    return found


def unplaced(rooms: list[tuple[set[str], Resources]], pods: list[tuple[str, Resources]]) -> list:
    """Return the pods that fit nowhere, the largest placed first; reduces the free resources."""
    left = []
    for kind, asked in sorted(pods, key=lambda pod: sorted(pod[1].items()), reverse=True):
        for kinds, room in rooms:
            if kind in kinds and all(n <= room.get(k, 0) + 1e-6 for k, n in asked.items()):
                room.update({key: room.get(key, 0) - n for key, n in asked.items()})
                break
        else:
            left.append((kind, asked))
    return left


def allocatable(node: dict[str, Any]) -> Resources:
    """Return what GKE leaves of a node to pods; EKS leaves more on nodes of this size."""
    memory, disk = gibibytes(node["memory"]), gibibytes(node["disk"])
    return {
        "cpu": node["cpu"] - KEPT_CORES - DAEMONS["cpu"],
        "memory": memory - kept_memory(memory) - DAEMONS["memory"],
        "disk": disk - kept_disk(disk) - DAEMONS["disk"],
        "GPU": node["gpu"],
    }


def test_all_pods_fit_the_nodes_of_the_values() -> None:
    problems = []
    for case in CASES:
        # The nodes are stated for models in the shared cache.
        if all_values(case)["storage"]["models"]["enabled"]:
            nodes = [node for node in all_values(case)["nodes"] for _ in range(node["count"])]
            rooms = [(set(node["for"]), allocatable(node)) for node in nodes]
            pods = [pod for obj in rendered(case) for pod in pods_of(obj)]
            problems += [f"{case}: no node for {pod}" for pod in unplaced(rooms, pods)]
    assert not problems, "\n".join(problems)


def ray_node(group: dict[str, Any]) -> Resources:
    """Return the resources that Ray counts on a pod of the group."""
    limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
    own = {key: float(number) for key, number in group.get("resources", {}).items()}
    return {"CPU": cores(limits["cpu"]), "GPU": float(limits.get("nvidia.com/gpu", 0)), **own}


def test_every_replica_fits_a_pod_of_its_pool(tmp_path: Path) -> None:
    problems = []
    for name in SIZES:
        path = tmp_path / f"{name}.yaml"
        path.write_text(settings_text(name), encoding="utf-8")
        settings, workers = load_settings(path), groups(of_kind(name, "RayService")[0]).values()
        llm_pool = "llm" if name == "pubmed" else "models"
        for bound in ("min", "max"):
            asked: list[tuple[str, Resources]] = []
            for stage_name in ("gateway", "expander", "encoder", "shard", "reranker", "writer"):
                stage = getattr(settings.serve, stage_name)
                count = getattr(stage, f"{bound}_replicas")
                count *= settings.index.shards if stage_name == "shard" else 1
                asked += [(stage.pool, {"CPU": stage.cpus, "GPU": stage.gpus})] * count
            # The placement group of a language model must be within one pod.
            bundles = [] if name == "kind" else placement_bundles(settings)
            model = {key: sum(b.get(key, 0) for b in bundles) for b in bundles for key in b}
            if name != "pubmed":
                model.pop(next((key for key in model if key.startswith("accelerator")), ""), None)
            replicas = getattr(settings.serve.llm, f"{bound}_replicas")
            asked += [(llm_pool, model)] * (replicas if model else 0)
            rooms = [
                ({group["labels"]["citeray/pool"]}, ray_node(group))
                for group in workers
                for _ in range(group[f"{bound}Replicas"])
            ]
            problems += [f"{name}, {bound}: no pod for {one}" for one in unplaced(rooms, asked)]
    assert not problems, "\n".join(problems)
