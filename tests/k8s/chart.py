"""The chart rendered by Helm, for every values file and each step of the walk-through."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any

import yaml

from tests.k8s.helm import K8S, helm

Object = dict[str, Any]
NAMESPACE = "citeray"

# What a user adds to the presets: see `mine.yaml` in k8s/README.md.
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CLASSES = {"batches": {"storageClass": "shared"}, "models": {"storageClass": "shared"}}
SECRETS = ("citeray-ray-token", "citeray-redis", "citeray-api-keys", "citeray-stores")

BUILD = {"build": {"enabled": True}}
NO_SERVICE = {"service": {"enabled": False}, "update": {"enabled": False}}
HOST = {"host": "citeray.example.org", "tlsSecret": "citeray-tls"}
# Values files, in order, and what is laid over them.
CASES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "small": (("small",), {}),
    "small/build": (("small",), {**BUILD, **NO_SERVICE}),
    "pubmed": (("pubmed",), {}),
    "pubmed/build": (("pubmed",), BUILD),
    "kind": (("kind",), {}),
    "kind/build": (("kind",), {**BUILD, **NO_SERVICE}),
    "small-gke": (("small", "gke"), {}),
    "small-eks": (("small", "eks"), {}),
    "pubmed-gke": (("pubmed", "gke"), BUILD),
    "pubmed-eks": (("pubmed", "eks"), BUILD),
    "gateway": (
        ("pubmed",),
        {
            "expose": {"kind": "gateway", **HOST, "gateway": {"className": "web"}},
            "service": {"upgrade": {"type": "NewCluster"}},
            "externalSecrets": {
                "enabled": True,
                "store": {"name": "vault"},
                "remoteKeys": {name: f"citeray/{name}" for name in SECRETS},
            },
            "image": {
                "digests": {"cpu": f"sha256:{'a' * 64}", "gpu": f"sha256:{'b' * 64}"},
                "pullSecrets": ["registry"],
            },
            "headState": {"kind": "external", "address": "redis-sentinel.data:26379"},
            "storage": {"models": {"enabled": False}},
            "kueue": {"buildQueue": "batch"},
            "network": {"serveEgress": [{"ports": [{"protocol": "TCP", "port": 5432}]}]},
            **BUILD,
        },
    ),
    "ingress": (("small",), {"expose": {"kind": "ingress", **HOST}, "headState": {"kind": "none"}}),
    "incremental": (
        ("pubmed",),
        {
            "service": {
                "upgrade": {
                    "type": "NewClusterWithIncrementalUpgrade",
                    "gatewayClass": "web",
                }
            }
        },
    ),
}
APPLIED = tuple(CASES)
SIZES = ("small", "pubmed", "kind")
SERVING = tuple(name for name in APPLIED if name not in ("small/build", "kind/build"))


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` laid on `base` as Helm does it: maps by their keys, all else whole."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else copy.deepcopy(value)
    return merged


def values_file(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((K8S / f"values-{name}.yaml").read_text("utf-8"))
    return found


def values_of(name: str, **more: Any) -> dict[str, Any]:
    """The values of a case, as given to Helm."""
    files, over = CASES[name]
    values: dict[str, Any] = {}
    if files[0] == "pubmed" and len(files) == 1:
        values = {"storage": CLASSES}
    if files[0] != "kind":
        values = merge(values, {"corpus": {"store": "s3://your-bucket/pubmed"}})
    for file in files:
        values = merge(values, values_file(file))
    for model in values.get("models", {}).values():
        model["revision"] = model["revision"] or COMMIT
    return merge(merge(values, over), more)


def all_values(name: str) -> dict[str, Any]:
    """The values of a case with the chart's defaults below them."""
    return dict(helm("merge_values", values_of(name)))


def render(values: dict[str, Any]) -> list[Object]:
    """The objects that Helm makes of the chart, and the RayJob that the daily update creates."""
    made = helm("render", values, name="citeray", namespace=NAMESPACE)
    objects = [
        obj
        for path, text in sorted(made.items())
        if path.endswith(".yaml")
        for obj in yaml.load_all(text, yaml.CSafeLoader)
        if obj
    ]
    for obj in list(objects):
        if obj["kind"] == "ConfigMap" and "rayjob.yaml" in obj["data"]:
            objects.append(yaml.load(obj["data"]["rayjob.yaml"], yaml.CSafeLoader))
    return objects


def notes(name: str) -> str:
    made = helm("render", values_of(name), name="citeray", namespace=NAMESPACE)
    return next(str(text) for path, text in made.items() if path.endswith("NOTES.txt"))


def of_release(values: dict[str, Any], release: str) -> dict[str, dict[str, Any]]:
    """What Helm installs, as kind/name, each by its release and whether it outlives that."""
    found = {}
    for obj in render(values):
        kept = "helm.sh/resource-policy" in obj["metadata"].get("annotations", {})
        identity = f"{obj['kind'].lower()}/{obj['metadata']['name']}"
        found[identity] = {"by": release, "keep": kept}
    # The update's RayJob is the CronJob's to create.
    found.pop("rayjob/citeray-update", None)
    return found


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
    elif kind == "Job":
        found = {"pod": spec["template"]}
    elif kind == "StatefulSet":
        found = {"replica": spec["template"]}
    else:
        return {}
    name = re.sub(r"-[0-9a-f]{10}$", "", obj["metadata"]["name"])
    return {f"{kind}/{name}/{part}": template for part, template in found.items()}


def all_pods(name: str) -> dict[str, dict[str, Any]]:
    """The pod templates of a case, with the labels that KubeRay adds."""
    found = {}
    for obj in rendered(name):
        for place, template in pod_templates(obj).items():
            labels = dict(template["metadata"]["labels"])
            part = place.rpartition("/")[2]
            if obj["kind"] in ("RayService", "RayJob") and part != "submitter":
                labels["ray.io/node-type"] = "head" if part == "head" else "worker"
                labels["ray.io/group"] = "headgroup" if part == "head" else part
                labels["ray.io/cluster"] = f"{obj['metadata']['name']}-abcde"
            metadata = template["metadata"] | {"labels": labels}
            found[place] = template | {"metadata": metadata}
    return found


def gibibytes(quantity: str) -> float:
    number, unit = float(quantity[:-2]), quantity[-2:]
    return number / {"Gi": 1, "Mi": 1024}[unit]


def cores(quantity: str) -> float:
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)
