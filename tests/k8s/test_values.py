"""Wrong values are refused with a message that names the value and the fix."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.k8s.chart import INCREMENTAL, NAMESPACE, values_of
from tests.k8s.helm import K8S, HelmRefusedError, helm

pytestmark = pytest.mark.process

MODEL = {"llm": {"name": "org/model", "revision": ""}}
# The case, the values on top of it, and a part of the message of k8s/templates/checks.yaml.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("pubmed", {"corpus": {"store": ""}}, "corpus.store: name where the index"),
    ("pubmed", {"models": MODEL}, "git ls-remote https://huggingface.co/org/model HEAD"),
    ("pubmed", {"storage": {"batches": {"storageClass": ""}}},
     "storage.batches.storageClass: name a class whose volumes several nodes can write"),
    ("pubmed", {"storage": {"models": {"storageClass": ""}}}, "storage.models.storageClass"),
    ("pubmed", {"storage": {"models": {"accessMode": "ReadWriteOnce"}}},
     "storage.models.accessMode: ReadWriteOnce serves one node"),
    ("pubmed", {"scheduling": {"llm": {"nodeAffinity": []}}},
     "scheduling.llm: sizes.llm.accelerator is H100, so select nodes that have it"),
    ("small", {"build": {"enabled": True}}, "have no room for both"),
    ("kind", {"build": {"enabled": True}}, "have no room for both"),
    ("small", {"headState": {"kind": "external"}}, "headState.address"),
    ("small", {"service": {"drainSeconds": 120}}, "service.drainSeconds"),
    ("small", {"expose": {"kind": "ingress"}}, "expose.host"),
    ("small", {"expose": {"kind": "ingress", "host": "a.example"}}, "expose.tlsSecret"),
    ("small", {"expose": {"kind": "gateway", "host": "a.example", "tlsSecret": "a"}},
     "expose.gateway: name a className"),
    ("kind", {"corpus": {"store": "s3://other/kind"}}, "must begin with s3://citeray/"),
    ("small", {"externalSecrets": {"enabled": True}}, "externalSecrets.store.name"),
    ("pubmed", {"service": {"upgrade": {**INCREMENTAL, "gatewayClass": ""}}},
     "service.upgrade.gatewayClass"),
    ("pubmed", {"service": {"upgrade": {**INCREMENTAL, "stepPercent": 50, "maxSurgePercent": 25}}},
     "must not be above service.upgrade.maxSurgePercent"),
    ("gateway", {"service": {"upgrade": INCREMENTAL}},
     "moves requests by KubeRay's own Gateway, so set it to none"),
]  # fmt: skip
# Values that values.schema.json refuses, and the name in its message.
OUTSIDE_SCHEMA: list[tuple[dict[str, Any], str]] = [
    ({"size": {}}, "size"),
    ({"sizes": {"retrieval": {"memory": "16G"}}}, "memory"),
    ({"sizes": {"retrieval": {"replica": 4}}}, "replica"),
    ({"sizes": {"models": {"cpu": 0}}}, "cpu"),
    ({"corpus": {"store": "https://bucket"}}, "store"),
    ({"models": {"encoder": {"name": "org/model", "revision": "main"}}}, "revision"),
    ({"storage": {"batches": {"accessMode": "ReadWriteSometimes"}}}, "accessMode"),
    ({"image": {"digests": {"cpu": "sha256:1"}}}, "cpu"),
    ({"headState": {"image": "redis latest"}}, "image"),
    ({"nodes": [{"name": "a"}]}, "nodes"),
    ({"network": {"identity": "aks"}}, "identity"),
    ({"network": {"fetchCidrs": ["example.org"]}}, "fetchCidrs"),
]


def message(call: str, values: dict[str, Any], **options: str) -> str:
    try:
        helm(call, values, **options)
    except HelmRefusedError as error:
        return f"{error.kind}: {error}"
    return "accepted"


def test_values_that_cannot_work_are_refused() -> None:
    problems = []
    for case, more, wanted in REFUSED:
        found = message("render", values_of(case, **more), name="citeray", namespace=NAMESPACE)
        if wanted not in found or not found.startswith("HelmRenderError"):
            problems.append(f"{case} with {more}: {found}, not {wanted}")
    for more, wanted in OUTSIDE_SCHEMA:
        found = message("validate_schema", values_of("pubmed", **more))
        if wanted not in found or found == "accepted":
            problems.append(f"{more}: {found}, not {wanted}")
    assert not problems, "\n".join(problems)


def undescribed(schema: dict[str, Any], values: Any, place: str = "") -> list[str]:
    """Return defaults that the schema does not describe, and properties without a default."""
    properties = schema.get("properties")
    if properties is None or not isinstance(values, dict):
        return []
    found = [f"{place}.{key}" for key in set(values) ^ set(properties) - {"global"}]
    for key in set(values) & set(properties):
        found += undescribed(properties[key], values[key], f"{place}.{key}")
    return found


def test_schema_and_defaults_name_the_same_values() -> None:
    schema = json.loads((K8S / "values.schema.json").read_text(encoding="utf-8"))
    optional = (".sizes.", ".models.", ".storage.models")
    found = undescribed(schema, helm("defaults"))
    assert [place for place in found if not place.startswith(optional)] == []
