"""Objects of the chart rendered by Helm, once per case and test session, and their pods.

A case is a list of values files in Helm's order, and the values that are set after them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import yaml

from tests.k8s.helm import K8S, helm

Object = dict[str, Any]
NAMESPACE = "citeray"

# Values that a user adds to the values files; k8s/README.md has them as `mine.yaml`.
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CLASSES = {"batches": {"storageClass": "shared"}, "models": {"storageClass": "shared"}}
SECRETS = ("citeray-ray-token", "citeray-redis", "citeray-api-keys", "citeray-stores")

BUILD = {"build": {"enabled": True}}
BUILD_ONLY = {**BUILD, "service": {"enabled": False}, "update": {"enabled": False}}
HOST = {"host": "citeray.example.org", "tlsSecret": "citeray-tls"}
INCREMENTAL = {"type": "NewClusterWithIncrementalUpgrade", "gatewayClass": "web"}
DIGESTS = {"cpu": f"sha256:{'a' * 64}", "gpu": f"sha256:{'b' * 64}"}
IDENTITY = {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/citeray"}
OPTIONS = {
    "expose": {"kind": "gateway", **HOST, "gateway": {"className": "web"}},
    "externalSecrets": {
        "enabled": True,
        "store": {"name": "vault"},
        "remoteKeys": {name: f"citeray/{name}" for name in SECRETS},
    },
    "image": {"digests": DIGESTS, "pullSecrets": ["registry"]},
    "headState": {"kind": "external", "address": "redis-sentinel.data:26379"},
    "storage": {"models": {"enabled": False}},
    "kueue": {"buildQueue": "batch"},
    "accounts": {"annotations": IDENTITY},
    "network": {"serveEgress": [{"ports": [{"protocol": "TCP", "port": 5432}]}]},
}
CASES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "small": (("small",), {}),
    "small/build": (("small",), BUILD_ONLY),
    "pubmed": (("pubmed",), {}),
    "pubmed/build": (("pubmed",), BUILD),
    "kind": (("kind",), {}),
    "kind/build": (("kind",), BUILD_ONLY),
    "small-gke": (("small", "gke"), {}),
    "small-eks": (("small", "eks"), {}),
    "pubmed-gke": (("pubmed", "gke"), BUILD),
    "pubmed-eks": (("pubmed", "eks"), BUILD),
    "gateway": (("pubmed",), {**OPTIONS, **BUILD}),
    "ingress": (("small",), {"expose": {"kind": "ingress", **HOST}, "headState": {"kind": "none"}}),
    "incremental": (("pubmed",), {"service": {"upgrade": INCREMENTAL}}),
}
SIZES = ("small", "pubmed", "kind")


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` merged in as Helm does: maps by key, other values replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else copy.deepcopy(value)
    return merged


def values_file(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((K8S / f"values-{name}.yaml").read_text("utf-8"))
    return found


def values_of(name: str, **more: Any) -> dict[str, Any]:
    """Return the values of a case as given to Helm, overridden by `more`."""
    files, over = CASES[name]
    values: dict[str, Any] = {"storage": CLASSES} if files == ("pubmed",) else {}
    if files[0] != "kind":
        values = merge(values, {"corpus": {"store": "s3://your-bucket/pubmed"}})
    for file in files:
        values = merge(values, values_file(file))
    for model in values.get("models", {}).values():
        model["revision"] = model["revision"] or COMMIT
    return merge(merge(values, over), more)


@cache
def all_values(name: str) -> dict[str, Any]:
    """Return the values of a case including the defaults of the chart."""
    return dict(helm("merge_values", values_of(name)))


def render(values: dict[str, Any]) -> list[Object]:
    """Return the rendered objects, and the RayJob that the daily update creates from its file."""
    files = helm("render", values, name="citeray", namespace=NAMESPACE)
    objects = [
        obj
        for path, text in sorted(files.items())
        if path.endswith(".yaml")
        for obj in yaml.load_all(text, yaml.CSafeLoader)
        if obj
    ]
    jobs = [obj["data"]["rayjob.yaml"] for obj in objects if "rayjob.yaml" in obj.get("data", {})]
    return objects + [yaml.load(job, yaml.CSafeLoader) for job in jobs]


@cache
def rendered(name: str) -> tuple[Object, ...]:
    return tuple(render(values_of(name)))


def of_kind(name: str, *kinds: str) -> list[Object]:
    return [obj for obj in rendered(name) if obj["kind"] in kinds]


def named(name: str, kind: str, of: str) -> Object:
    (found,) = [obj for obj in of_kind(name, kind) if obj["metadata"]["name"] == of]
    return found


def settings_text(name: str) -> str:
    text: str = named(name, "ConfigMap", "citeray-settings")["data"]["settings.yaml"]
    return text


def cluster_spec(obj: Object) -> dict[str, Any]:
    """Return the RayCluster in a RayService or RayJob."""
    spec = obj["spec"]
    found: dict[str, Any] = spec.get("rayClusterConfig") or spec["rayClusterSpec"]
    return found


def groups(obj: Object) -> dict[str, dict[str, Any]]:
    """Return the worker groups of a RayService or RayJob by name."""
    return {group["groupName"]: group for group in cluster_spec(obj)["workerGroupSpecs"]}


def pod_templates(obj: Object) -> dict[str, dict[str, Any]]:
    """Return the pod templates of an object by KIND/NAME/PART, with the labels KubeRay adds."""
    kind, spec = obj["kind"], obj.get("spec", {})
    name = re.sub(r"-[0-9a-f]{10}$", "", obj["metadata"]["name"])
    if kind in ("RayService", "RayJob"):
        parts = {"head": cluster_spec(obj)["headGroupSpec"], **groups(obj)}
        found = {}
        for part, group in parts.items():
            labels = {
                **group["template"]["metadata"]["labels"],
                "ray.io/node-type": "head" if part == "head" else "worker",
                "ray.io/group": "headgroup" if part == "head" else part,
                "ray.io/cluster": f"{name}-abcde",
            }
            found[part] = merge(group["template"], {"metadata": {"labels": labels}})
        if kind == "RayJob":
            found["submitter"] = spec["submitterPodTemplate"]
    elif kind == "CronJob":
        found = {"job": spec["jobTemplate"]["spec"]["template"]}
    elif kind in ("Job", "StatefulSet"):
        found = {"pod" if kind == "Job" else "replica": spec["template"]}
    else:
        found = {}
    return {f"{kind}/{name}/{part}": template for part, template in found.items()}


@cache
def all_pods(name: str) -> dict[str, dict[str, Any]]:
    return {place: pod for obj in rendered(name) for place, pod in pod_templates(obj).items()}


def by_pod(value: Callable[[str, str, dict[str, Any]], Any]) -> dict[str, Any]:
    """Return `value(case, place, template)` of every pod of every case."""
    return {
        f"{case}: {place}": value(case, place, template)
        for case in CASES
        for place, template in all_pods(case).items()
    }


def by_container(value: Callable[[dict[str, Any]], Any], *, init: bool = True) -> dict[str, Any]:
    """Return `value(container)` of every container, with or without init containers."""
    return {
        f"{pod}/{container['name']}": value(container)
        for pod, spec in by_pod(lambda _case, _place, template: template["spec"]).items()
        for container in [*(spec.get("initContainers", []) if init else []), *spec["containers"]]
    }


def by_object(value: Callable[[str, Object], Any], *kinds: str) -> dict[str, Any]:
    """Return `value(case, object)` of every object of these kinds in every case."""
    return {
        f"{case}: {obj['kind']}/{obj['metadata']['name']}": value(case, obj)
        for case in CASES
        for obj in of_kind(case, *kinds)
    }


def values_for_key(node: Any, key: str) -> list[Any]:
    """Return every value of a key, at any depth."""
    if isinstance(node, list):
        return [found for value in node for found in values_for_key(value, key)]
    if not isinstance(node, dict):
        return []
    own = [node[key]] if key in node else []
    return own + [found for value in node.values() for found in values_for_key(value, key)]


def matches(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    """Return whether a label selector selects these labels; an empty one selects all."""
    selector = selector or {}
    for wanted in selector.get("matchExpressions", []):
        if wanted["operator"] not in ("In", "Exists"):
            raise ValueError(f"label selector {wanted}: only In and Exists are supported here")
        value = labels.get(wanted["key"])
        if value is None or (wanted["operator"] == "In" and value not in wanted["values"]):
            return False
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def gibibytes(quantity: str) -> float:
    number, unit = float(quantity[:-2]), quantity[-2:]
    return number / {"Gi": 1, "Mi": 1024}[unit]


def cores(quantity: str) -> float:
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)
