"""The sizes of the manifests beside the plan, the settings, and what Ray's autoscaler sees."""

from __future__ import annotations

from typing import Any

import pytest
from ray.autoscaler._private.kuberay.autoscaling_config import (
    _derive_autoscaling_config_from_ray_cr as as_the_autoscaler_sees_it,
)

from cluster.settings.settings import Settings, load_settings
from planning.emit import planned_settings
from planning.measure.coefficients import SHIPPED, read_coefficients
from planning.place_workers import Ask
from planning.plan import Plan, make_plan
from serve.llm_app import placement_bundles
from tests.k8s.overlays import K8S, OVERLAYS, cluster_spec, of_kind
from tests.k8s.test_references import gibibytes

# The walk-through names the same.
ASKED = {
    "pubmed": Ask(38_000_000, 1.0, 2.0, nodes=8, gpu_nodes=8),
    "small": Ask(60_000, 1.0, 2.0, nodes=1, gpu_nodes=1),
}


def settings_of(name: str) -> Settings:
    return load_settings(K8S / f"overlays/{name}/settings/settings.yaml")


def plan_of(name: str) -> Plan:
    return make_plan(read_coefficients(SHIPPED), settings_of(name), ASKED[name], shipped=True)


def resources(group: dict[str, Any]) -> dict[str, str]:
    (container,) = group["template"]["spec"]["containers"]
    found: dict[str, str] = container["resources"]["limits"]
    return found


@pytest.mark.parametrize(("name", "path"), [("pubmed", "pubmed/build"), ("small", "small/build")])
def test_the_plan_would_do(name: str, path: str) -> None:
    assert plan_of(name).problems == ()
    (job,) = of_kind(path, "RayJob")
    driver = next(f.value for f in plan_of(name).memory if f.name == "driver")
    head = cluster_spec(job)["headGroupSpec"]
    assert gibibytes(resources(head)["memory"]) * 2**30 > 2 * driver


def test_the_settings_of_a_cluster_are_the_plans() -> None:
    settings = settings_of("pubmed")
    planned = planned_settings(settings, plan_of("pubmed"))
    assert settings.index.shards == planned.index.shards
    shard, wanted = settings.serve.shard, planned.serve.shard
    assert (shard.min_replicas, shard.cpus) == (wanted.min_replicas, wanted.cpus)


def demands(settings: Settings, most: bool) -> dict[str, list[dict[str, float]]]:
    """What each replica of each stage asks of Ray, by the pool that it must be in."""
    found: dict[str, list[dict[str, float]]] = {}
    for name in ("gateway", "expander", "encoder", "shard", "reranker", "writer"):
        stage = getattr(settings.serve, name)
        replicas = stage.max_replicas if most else stage.min_replicas
        replicas *= settings.index.shards if name == "shard" else 1
        asked = {"CPU": stage.cpus, "GPU": stage.gpus}
        found.setdefault(stage.pool, []).extend([asked] * replicas)
    return found


def fits(pods: list[dict[str, float]], asked: list[dict[str, float]]) -> bool:
    """Whether each finds a pod with room, the largest first."""
    left = [dict(pod) for pod in pods]
    for one in sorted(asked, key=lambda a: (-a["GPU"], -a["CPU"])):
        for pod in left:
            if all(pod.get(k, 0) + 1e-6 >= v for k, v in one.items()):
                for k, v in one.items():
                    pod[k] = pod.get(k, 0) - v
                break
        else:
            return False
    return True


def node_types(name: str) -> dict[str, dict[str, Any]]:
    (service,) = of_kind(name, "RayService")
    cluster = {
        "metadata": {"name": "citeray", "namespace": "citeray"},
        "spec": cluster_spec(service),
    }
    found: dict[str, dict[str, Any]] = as_the_autoscaler_sees_it(cluster)["available_node_types"]
    return found


@pytest.mark.parametrize("most", [False, True], ids=["at rest", "at most"])
@pytest.mark.parametrize("name", OVERLAYS)
def test_every_replica_finds_a_pod_of_its_pool(name: str, most: bool) -> None:
    settings, types = settings_of(name), node_types(name)
    for pool, asked in demands(settings, most).items():
        pods = [
            {key: float(value) for key, value in node["resources"].items()}
            for node in types.values()
            if node["labels"].get("citeray/pool") == pool
            for _ in range(node["max_workers"] if most else node["min_workers"])
        ]
        if name == "small":
            # The language model's engine is in the same pod.
            asked = [*asked, *({"CPU": b["CPU"], "GPU": b["GPU"]} for b in model(settings))]
        assert fits(pods, asked), pool


def model(settings: Settings) -> list[dict[str, float]]:
    return placement_bundles(settings)


def test_the_language_models_gpus_are_in_one_pod_as_the_autoscaler_sees_it() -> None:
    settings = settings_of("pubmed")
    node = node_types("pubmed")["llm"]
    for key in set().union(*model(settings)):
        asked = sum(bundle[key] for bundle in model(settings))
        assert node["resources"][key] >= asked, key
    assert node["min_workers"] >= settings.serve.llm.min_replicas
    assert node["max_workers"] >= settings.serve.llm.max_replicas


@pytest.mark.parametrize("name", OVERLAYS)
def test_no_stage_runs_on_the_head(name: str) -> None:
    head = node_types(name)["headgroup"]
    assert head["resources"]["CPU"] == 0
    assert "citeray/pool" not in head["labels"]
