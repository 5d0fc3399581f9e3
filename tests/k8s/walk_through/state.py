"""What a stand-in cluster holds, which its kubectl and its helm share."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

Object = dict[str, Any]
ALIASES = {
    "pvc": "PersistentVolumeClaim",
    "persistentvolumeclaim": "PersistentVolumeClaim",
    **{
        kind.lower(): kind
        for kind in ("RayService", "RayJob", "RayCluster", "CronJob", "Job", "Secret", "Service")
    },
}
# What a test may have go wrong; the values are those of a cluster where nothing does.
PLAN: dict[str, Any] = {
    "repository": True,  # whether a chart repository is reached
    "build": ["Initializing", "Running", "Complete SUCCEEDED"],  # states, one a look
    "update": ["Running", "Complete SUCCEEDED"],
    "service": True,  # whether the Ray cluster of the service starts
    "outages": 0,  # how many looks at a job find no API server
}


class RefusedError(Exception):
    """What a command says when it fails."""


class Arguments(argparse.ArgumentParser):
    """A parser that ends no process where it does not understand its words."""

    def error(self, message: str) -> NoReturn:
        raise RefusedError(f"error: {message}")


def fresh(groups: Sequence[str], plan: Mapping[str, Any]) -> Object:
    """An empty cluster, with definitions of `groups`."""
    return {
        "plan": {**PLAN, **plan},
        "groups": list(groups),
        "repositories": [],
        "releases": {},
        "context": "default",
        "namespaces": {"default": {}},
        "objects": {},
        "published": False,
    }


def key_of(namespace: str, kind: str, name: str) -> str:
    return f"{namespace}/{kind}/{name}"


def in_namespace(state: Object, namespace: str, kind: str = "") -> dict[str, Object]:
    start = f"{namespace}/{kind}/" if kind else f"{namespace}/"
    return {key: obj for key, obj in state["objects"].items() if key.startswith(start)}


def remove(state: Object, key: str) -> None:
    """As Kubernetes and KubeRay do it: what the head kept in Redis is cleared first."""
    obj = state["objects"].pop(key)
    namespace, kind, _ = key.split("/")
    if kind != "RayService" or not obj["spec"]["rayClusterConfig"].get("gcsFaultToleranceOptions"):
        return
    redis = key_of(namespace, "StatefulSet", "citeray-redis") in state["objects"]
    if not redis or "ray.io" not in state["groups"] or not operator_runs(state):
        stuck = key_of(namespace, "RayCluster", "citeray-abcde")
        state["objects"][stuck] = {"kind": "RayCluster", "metadata": {"name": "citeray-abcde"}}


def operator_runs(state: Object) -> bool:
    return any(release.endswith("/kuberay-operator") for release in state["releases"])
