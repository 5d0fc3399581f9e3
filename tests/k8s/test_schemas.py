"""Every object of the chart by its schema: Kubernetes' own, KubeRay's, other operators'."""

from __future__ import annotations

import copy
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

import kubernetes_validate
import kubernetes_validate.utils
import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, ValidationError

from tests.k8s.chart import (
    APPLIED,
    NAMESPACE,
    all_pods,
    cluster_spec,
    of_kind,
    rendered,
    values_of,
)
from tests.k8s.helm import helm
from tests.k8s.kuberay_fields import SPECS

VERSION = "1.34"
CRDS = Path(__file__).resolve().parents[3] / "shared/kuberay-crds"
Strings = dict[str, str]
# It reads its definitions, of some megabytes, for every object.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Selector(Model):
    matchLabels: Strings = {}
    matchExpressions: list[dict[str, Any]] = []


class Endpoint(Model):
    port: str
    interval: str
    path: str = "/metrics"
    scheme: Literal["http", "https"] = "http"


class PodMonitorSpec(Model):
    """The fields of Prometheus' operator that we use, as the classes below."""

    selector: Selector
    podMetricsEndpoints: list[Endpoint]
    podTargetLabels: list[str] = []


class Rule(Model):
    alert: str
    expr: str
    labels: Strings
    annotations: Strings


class TimedRule(Rule):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)
    pending: str = ""

    def __init__(self, **data: Any) -> None:
        super().__init__(**{"pending" if key == "for" else key: v for key, v in data.items()})


class RuleGroup(Model):
    name: str
    rules: list[TimedRule]


class PrometheusRuleSpec(Model):
    groups: list[RuleGroup]


class Tls(Model):
    mode: Literal["Terminate"]
    certificateRefs: list[Strings]


class Listener(Model):
    name: str
    hostname: str
    port: int
    protocol: Literal["HTTPS"]
    tls: Tls
    allowedRoutes: dict[str, Any]


class GatewaySpec(Model):
    gatewayClassName: str
    listeners: list[Listener]


class HTTPRouteSpec(Model):
    parentRefs: list[Strings]
    hostnames: list[str]
    rules: list[dict[str, list[dict[str, Any]]]]


class Extract(Model):
    extract: Strings


class ExternalSecretSpec(Model):
    refreshInterval: str
    secretStoreRef: Strings
    target: Strings
    dataFrom: list[Extract]


OTHERS: dict[tuple[str, str], type[BaseModel]] = {
    **{("ray.io/v1", kind): spec for kind, spec in SPECS.items()},
    ("monitoring.coreos.com/v1", "PodMonitor"): PodMonitorSpec,
    ("monitoring.coreos.com/v1", "PrometheusRule"): PrometheusRuleSpec,
    ("gateway.networking.k8s.io/v1", "Gateway"): GatewaySpec,
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): HTTPRouteSpec,
    ("external-secrets.io/v1", "ExternalSecret"): ExternalSecretSpec,
}


def check(obj: dict[str, Any]) -> None:
    spec = OTHERS.get((obj["apiVersion"], obj["kind"]))
    if spec is None:
        check_as_kubernetes(json.dumps(obj))
        return
    assert set(obj) == {"apiVersion", "kind", "metadata", "spec"}
    spec.model_validate(obj["spec"])


@cache
def check_as_kubernetes(obj: str) -> None:
    kubernetes_validate.validate(json.loads(obj), VERSION, strict=True)


def as_pod(template: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "pod", **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize("name", APPLIED)
def test_every_object_is_valid_by_its_schema(name: str) -> None:
    for obj in rendered(name):
        check(obj)
        assert obj["metadata"].get("namespace", NAMESPACE) == NAMESPACE


@pytest.mark.parametrize("name", APPLIED)
def test_no_two_objects_are_one(name: str) -> None:
    found = [(obj["kind"], obj["metadata"]["name"]) for obj in rendered(name)]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", APPLIED)
def test_helm_has_nothing_against_the_chart(name: str) -> None:
    report = helm("lint", values_of(name), strict=True, namespace=NAMESPACE)
    found = [message["error"] for message in report["messages"]]
    assert [error for error in found if error != "icon is recommended"] == []
    assert report["errors"] == []


@pytest.mark.parametrize("name", APPLIED)
def test_every_pod_that_kuberay_makes_is_valid_as_kubernetes_own(name: str) -> None:
    for template in all_pods(name).values():
        check_as_kubernetes(json.dumps(as_pod(template)))


def test_the_autoscalers_container_is_valid_as_kubernetes_own() -> None:
    (service,) = of_kind("pubmed", "RayService")
    options = dict(cluster_spec(service)["autoscalerOptions"])
    for own in ("version", "idleTimeoutSeconds"):
        del options[own]
    container = {"name": "autoscaler", "image": "citeray:0", **options}
    pod = as_pod({"metadata": {}, "spec": {"containers": [container]}})
    kubernetes_validate.validate(pod, VERSION, strict=True)


@pytest.mark.parametrize(
    ("case", "kind", "path"),
    [
        ("pubmed", "CronJob", "spec.jobTemplate.spec.template.spec.containers.0.resource"),
        ("pubmed", "NetworkPolicy", "spec.podselector"),
        ("pubmed", "PodDisruptionBudget", "spec.minavailable"),
        ("pubmed", "StatefulSet", "spec.template.spec.volume"),
        ("pubmed", "Job", "spec.template.spec.volume"),
        ("pubmed", "RayJob", "spec.rayClusterSpec.headGroupSpec.rayStartParam"),
        ("pubmed", "RayService", "spec.rayClusterConfig.gcsFaultToleranceOption"),
        ("pubmed", "PodMonitor", "spec.podMetricsEndpoints.0.ports"),
        ("pubmed", "PrometheusRule", "spec.groups.0.rules.0.expression"),
        ("gateway", "Gateway", "spec.listeners.0.host"),
        ("gateway", "HTTPRoute", "spec.hostname"),
        ("gateway", "ExternalSecret", "spec.secretStore"),
        ("ingress", "Ingress", "spec.rule"),
    ],
)
def test_a_field_that_is_none_is_refused(case: str, kind: str, path: str) -> None:
    obj = copy.deepcopy(of_kind(case, kind)[0])
    node: Any = obj
    *above, last = path.split(".")
    for part in above:
        node = node[int(part)] if part.isdigit() else node[part]
    node[last] = {}
    with pytest.raises((ValidationError, kubernetes_validate.ValidationError)):
        check(obj)


def strict(schema: Any) -> Any:
    """A CRD's schema that refuses fields that it does not name, as the API server prunes them."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    found = {key: strict(value) for key, value in schema.items() if not key.startswith("x-")}
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(found.get("properties"), dict) and not open_ended:
        found.setdefault("additionalProperties", False)
    return found


@pytest.fixture(scope="module")
def crds() -> dict[str, Draft202012Validator]:
    """KubeRay's own definitions by the kinds that they define."""
    if not CRDS.is_dir():
        pytest.skip("needs ../shared/kuberay-crds")
    found = {}
    for plural, kind in (("rayjobs", "RayJob"), ("rayservices", "RayService")):
        text = gzip.decompress((CRDS / f"ray.io_{plural}.yaml.gz").read_bytes())
        spec = yaml.load(text, yaml.CSafeLoader)["spec"]
        (version,) = [v for v in spec["versions"] if v["name"] == "v1"]
        schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        found[kind] = Draft202012Validator(strict(schema))
    return found


@pytest.mark.parametrize("name", APPLIED)
def test_kuberays_own_definitions_take_it(name: str, crds: dict[str, Draft202012Validator]) -> None:
    for obj in of_kind(name, "RayJob", "RayService"):
        errors = [error.message for error in crds[obj["kind"]].iter_errors(obj["spec"])]
        assert errors == []
    if name == "incremental":
        (service,) = of_kind(name, "RayService")
        options = service["spec"]["upgradeStrategy"]["clusterUpgradeOptions"]
        options = {**options, "stepSize": 5}
        spoiled = {"upgradeStrategy": {"clusterUpgradeOptions": options}}
        assert not crds["RayService"].is_valid({**service["spec"], **spoiled})
