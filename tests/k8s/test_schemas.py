"""Every rendered object against its schema: Kubernetes' own, KubeRay's CRDs, other operators'."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import kubernetes_validate.utils  # type: ignore[import-untyped]
import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.k8s.chart import CASES, NAMESPACE, all_pods, cluster_spec, groups, of_kind, rendered
from tests.k8s.helm import K8S

pytestmark = pytest.mark.process

VERSION = "1.34"
CRDS = Path(__file__).parent / "crds"
# The library would read several megabytes of schemas again for each object.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)


def strict(schema: Any) -> Any:
    """Return a CRD's schema that refuses unknown fields, which the API server would drop."""
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
        found.setdefault("type", "object")
    return found


@cache
def custom_resources() -> dict[str, Draft202012Validator]:
    """Return validators of `spec` for each kind of custom resource."""
    used = yaml.safe_load((CRDS / "used_fields.yaml").read_text("utf-8"))
    schemas = {kind: strict(schema) for kind, schema in used.items()}
    for path in CRDS.glob("*.yaml.gz"):
        definition = yaml.load(gzip.decompress(path.read_bytes()), yaml.CSafeLoader)["spec"]
        (version,) = [v for v in definition["versions"] if v["name"] == "v1"]
        schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        schemas[definition["names"]["kind"]] = strict(schema)
    return {kind: Draft202012Validator(schema) for kind, schema in schemas.items()}


@cache
def kubernetes_errors(obj: str) -> tuple[str, ...]:
    try:
        kubernetes_validate.validate(json.loads(obj), VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return (f"{'.'.join(map(str, error.path))}: {error.message}",)
    return ()


def as_pod(spec: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": "pod", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def errors_of(obj: dict[str, Any]) -> list[str]:
    if (validator := custom_resources().get(obj["kind"])) is None:
        return list(kubernetes_errors(json.dumps(obj)))
    fields = set(obj) ^ {"apiVersion", "kind", "metadata", "spec"}
    errors = validator.iter_errors(obj["spec"])
    return [*fields, *(f"{error.json_path}: {error.message[:200]}" for error in errors)]


def test_every_object_is_valid_and_unique() -> None:
    problems = []
    for case in CASES:
        names = [(obj["kind"], obj["metadata"]["name"]) for obj in rendered(case)]
        problems += [f"{case}: {name} twice" for name in set(names) if names.count(name) > 1]
        for obj in rendered(case):
            errors = errors_of(obj)
            if obj["metadata"].get("namespace", NAMESPACE) != NAMESPACE:
                errors.append("wrong namespace")
            where = f"{case}: {obj['kind']}/{obj['metadata']['name']}"
            problems += [f"{where}: {error}" for error in errors]
    assert not problems, "\n".join(problems)


def test_pods_in_custom_resources_are_valid() -> None:
    problems = []
    for case in CASES:
        for place, template in all_pods(case).items():
            pod = as_pod(template["spec"], template["metadata"]["labels"])
            problems += [f"{case}: {place}: {e}" for e in kubernetes_errors(json.dumps(pod))]
        for service in of_kind(case, "RayService"):
            options = dict(cluster_spec(service).get("autoscalerOptions", {}))
            own = {"version": "", "idleTimeoutSeconds": 0}
            container = {k: v for k, v in options.items() if k not in own}
            pod = as_pod({"containers": [{"name": "autoscaler", **container}]}, {})
            problems += [f"{case}: autoscaler: {e}" for e in kubernetes_errors(json.dumps(pod))]
    assert not problems, "\n".join(problems)


def refused_by_operator(obj: dict[str, Any]) -> Iterator[str]:
    """Yield the faults that KubeRay 1.7 refuses beyond its CRDs (in `validation.go`)."""
    spec, cluster = obj["spec"], cluster_spec(obj)
    if cluster.get("authOptions", {}).get("mode") != "token":
        yield "no token authentication"
    for name, group in groups(obj).items():
        if not 0 < group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]:
            yield f"replicas of {name} outside their limits"
    if obj["kind"] == "RayJob":
        # The operator puts the entrypoint into a shell command line.
        if set(";&|<>$`") & set(spec["entrypoint"]):
            yield f"entrypoint {spec['entrypoint']}"
        if not (spec["shutdownAfterJobFinishes"] and spec["activeDeadlineSeconds"] > 0):
            yield "shutdownAfterJobFinishes and activeDeadlineSeconds are required"
    elif spec["upgradeStrategy"]["type"] == "NewClusterWithIncrementalUpgrade" and not cluster.get(
        "enableInTreeAutoscaling"
    ):
        yield "an incremental upgrade needs the autoscaler"


def test_kuberay_operator_accepts_ray_objects() -> None:
    lock = (K8S.parent / "requirements/cpu.txt").read_text(encoding="utf-8")
    problems = []
    for case in CASES:
        for obj in of_kind(case, "RayJob", "RayService"):
            where = f"{case}: {obj['kind']}/{obj['metadata']['name']}"
            problems += [f"{where}: {problem}" for problem in refused_by_operator(obj)]
            if f"ray=={cluster_spec(obj)['rayVersion']} " not in lock:
                problems.append(f"{where}: rayVersion is not that of requirements/cpu.txt")
    assert not problems, "\n".join(problems)
