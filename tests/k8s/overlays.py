"""The kustomizations that a user applies, rendered."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tests.k8s.render import Object, render

K8S = Path(__file__).resolve().parents[2] / "k8s"
OVERLAYS = ("small", "pubmed")
APPLIED = ("small", "small/build", "pubmed", "pubmed/build")


@cache
def rendered(name: str) -> tuple[Object, ...]:
    return tuple(render(K8S / "overlays" / name))


def of_kind(name: str, *kinds: str) -> list[Object]:
    return [obj for obj in rendered(name) if obj["kind"] in kinds]


def cluster_spec(obj: Object) -> dict[str, Any]:
    """The RayCluster within a RayService or RayJob."""
    spec = obj["spec"]
    found: dict[str, Any] = spec.get("rayClusterConfig") or spec["rayClusterSpec"]
    return found


def groups(obj: Object) -> dict[str, dict[str, Any]]:
    """The worker groups of a RayService or RayJob by their names."""
    return {group["groupName"]: group for group in cluster_spec(obj)["workerGroupSpecs"]}


def pod_templates(obj: Object) -> dict[str, dict[str, Any]]:
    """Every pod that the object leads to, by a name that tells it apart."""
    kind, spec = obj["kind"], obj.get("spec", {})
    if kind in ("RayService", "RayJob"):
        found = {"head": cluster_spec(obj)["headGroupSpec"]["template"]}
        found |= {name: group["template"] for name, group in groups(obj).items()}
        if kind == "RayJob":
            found["submitter"] = spec["submitterPodTemplate"]
    elif kind == "CronJob":
        found = {"job": spec["jobTemplate"]["spec"]["template"]}
    elif kind == "StatefulSet":
        found = {"replica": spec["template"]}
    else:
        return {}
    name = obj["metadata"]["name"]
    return {f"{kind}/{name}/{part}": template for part, template in found.items()}


def all_pods(name: str) -> dict[str, dict[str, Any]]:
    """The pod templates of a kustomization, with the labels that KubeRay adds."""
    found = {}
    for obj in rendered(name):
        for place, template in pod_templates(obj).items():
            labels = dict(template["metadata"]["labels"])
            part = place.rpartition("/")[2]
            if obj["kind"] in ("RayService", "RayJob") and part != "submitter":
                labels["ray.io/node-type"] = "head" if part == "head" else "worker"
                labels["ray.io/group"] = "headgroup" if part == "head" else part
            metadata = template["metadata"] | {"labels": labels}
            found[place] = template | {"metadata": metadata}
    return found
