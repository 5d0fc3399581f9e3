"""Wrong values are refused with a message that names the value and the fix."""

from __future__ import annotations

from typing import Any

import pytest

from tests.k8s.chart import INCREMENTAL, NAMESPACE, values_of
from tests.k8s.helm import HelmRefusedError, helm

pytestmark = pytest.mark.process

MODEL = {"llm": {"name": "org/model", "revision": ""}}
# The case, the values on top of it, and a part of the message of k8s/templates/checks.yaml.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("pubmed", {"corpus": {"store": ""}}, "corpus.store: name where the index"),
    ("pubmed", {"models": MODEL}, "git ls-remote https://huggingface.co/org/model HEAD"),
    ("pubmed", {"storage": {"batches": {"storageClass": ""}}},
     "storage.batches.storageClass: name a class whose volumes several nodes can write"),
    ("pubmed", {"storage": {"models": {"accessMode": "ReadWriteOnce"}}},
     "storage.models.accessMode: ReadWriteOnce serves one node"),
    ("pubmed", {"scheduling": {"llm": {"nodeAffinity": []}}},
     "scheduling.llm: sizes.llm.accelerator is H100, so select nodes that have it"),
    ("small", {"build": {"enabled": True}}, "have no room for both"),
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
    ({"models": {"encoder": {"name": "org/model", "revision": "main"}}}, "revision"),
    ({"network": {"fetchCidrs": ["example.org"]}}, "fetchCidrs"),
]


def message(call: str, values: dict[str, Any], **options: str) -> str:
    try:
        helm(call, values, **options)
    except HelmRefusedError as error:
        return f"{error.kind}: {error}"
    return "accepted"


def test_impossible_values_are_refused() -> None:
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
