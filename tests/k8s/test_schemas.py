"""Every object of the overlays by its schema: Kubernetes' own, KubeRay's, Prometheus'."""

from __future__ import annotations

import copy
from typing import Any, Literal

import kubernetes_validate
import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from tests.k8s.kuberay_fields import SPECS
from tests.k8s.overlays import APPLIED, all_pods, cluster_spec, of_kind, rendered

VERSION = "1.34"
OTHERS = {"ray.io/v1": ("RayJob", "RayService"), "monitoring.coreos.com/v1": ("ServiceMonitor",)}


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Selector(Model):
    matchLabels: dict[str, str]


class Endpoint(Model):
    port: str
    interval: str
    path: str = "/metrics"
    scheme: Literal["http", "https"] = "http"


class ServiceMonitorSpec(Model):
    """The fields of Prometheus' operator that we use."""

    selector: Selector
    endpoints: list[Endpoint]
    podTargetLabels: list[str] = []


def check(obj: dict[str, Any]) -> None:
    if obj["apiVersion"] not in OTHERS:
        kubernetes_validate.validate(obj, VERSION, strict=True)
        return
    assert obj["kind"] in OTHERS[obj["apiVersion"]]
    assert set(obj) == {"apiVersion", "kind", "metadata", "spec"}
    if obj["kind"] == "ServiceMonitor":
        ServiceMonitorSpec.model_validate(obj["spec"])
    else:
        SPECS[obj["kind"]].model_validate(obj["spec"])


def as_pod(template: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "pod", **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize("name", APPLIED)
def test_every_object_is_valid_by_its_schema(name: str) -> None:
    for obj in rendered(name):
        check(obj)


@pytest.mark.parametrize("name", APPLIED)
def test_every_pod_that_kuberay_makes_is_valid_as_kubernetes_own(name: str) -> None:
    for template in all_pods(name).values():
        kubernetes_validate.validate(as_pod(template), VERSION, strict=True)


@pytest.mark.parametrize("name", ["small", "pubmed"])
def test_the_autoscalers_container_is_valid_as_kubernetes_own(name: str) -> None:
    (service,) = of_kind(name, "RayService")
    options = dict(cluster_spec(service)["autoscalerOptions"])
    for own in ("version", "idleTimeoutSeconds"):
        del options[own]
    container = {"name": "autoscaler", "image": "citeray:0", **options}
    pod = as_pod({"metadata": {}, "spec": {"containers": [container]}})
    kubernetes_validate.validate(pod, VERSION, strict=True)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("CronJob", "spec.jobTemplate.spec.template.spec.containers.0.resource"),
        ("NetworkPolicy", "spec.podselector"),
        ("PodDisruptionBudget", "spec.minavailable"),
        ("StatefulSet", "spec.template.spec.volume"),
        ("RayJob", "spec.rayClusterSpec.headGroupSpec.rayStartParam"),
        ("RayService", "spec.rayClusterConfig.gcsFaultToleranceOption"),
        ("ServiceMonitor", "spec.endpoints.0.ports"),
    ],
)
def test_a_field_that_is_none_is_refused(kind: str, path: str) -> None:
    obj = copy.deepcopy(of_kind("pubmed", kind)[0])
    node: Any = obj
    *above, last = path.split(".")
    for part in above:
        node = node[int(part)] if part.isdigit() else node[part]
    node[last] = {}
    with pytest.raises((ValidationError, kubernetes_validate.ValidationError)):
        check(obj)
