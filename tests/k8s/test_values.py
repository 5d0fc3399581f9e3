"""What the chart refuses, and in which words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.k8s.chart import COMMIT, K8S, all_values, merge, notes, render, values_of
from tests.k8s.helm import HelmRefusedError, helm

INCREMENTAL = {"type": "NewClusterWithIncrementalUpgrade", "gatewayClass": "web"}


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("pubmed", {"corpus": {"store": ""}}, "corpus.store: name where the index"),
        (
            "pubmed",
            {"models": {"llm": {"name": "org/model", "revision": ""}}},
            "git ls-remote https://huggingface.co/org/model HEAD",
        ),
        (
            "pubmed",
            {"storage": {"batches": {"storageClass": ""}}},
            "storage.batches.storageClass: name a class whose volumes several nodes can write",
        ),
        ("pubmed", {"storage": {"models": {"storageClass": ""}}}, "storage.models.storageClass"),
        (
            "pubmed",
            {"storage": {"models": {"accessMode": "ReadWriteOnce"}}},
            "storage.models.accessMode: ReadWriteOnce serves one node",
        ),
        (
            "pubmed",
            {"scheduling": {"llm": {"nodeAffinity": []}}},
            "scheduling.llm: sizes.llm.accelerator is H100, so select nodes that have it",
        ),
        ("small", {"build": {"enabled": True}}, "have no room for both"),
        ("small", {"headState": {"kind": "external"}}, "headState.address"),
        ("small", {"service": {"drainSeconds": 120}}, "service.drainSeconds"),
        ("small", {"expose": {"kind": "ingress"}}, "expose.host"),
        ("small", {"expose": {"kind": "ingress", "host": "a.example"}}, "expose.tlsSecret"),
        (
            "small",
            {"expose": {"kind": "gateway", "host": "a.example", "tlsSecret": "a"}},
            "expose.gateway: name a className",
        ),
        ("kind", {"corpus": {"store": "s3://other/kind"}}, "must begin with s3://citeray/"),
        ("small", {"externalSecrets": {"enabled": True}}, "externalSecrets.store.name"),
        (
            "pubmed",
            {"service": {"upgrade": {**INCREMENTAL, "gatewayClass": ""}}},
            "service.upgrade.gatewayClass",
        ),
        (
            "pubmed",
            {"service": {"upgrade": {**INCREMENTAL, "stepPercent": 50, "maxSurgePercent": 25}}},
            "must not be above service.upgrade.maxSurgePercent",
        ),
        (
            "gateway",
            {"service": {"upgrade": INCREMENTAL}},
            "moves requests by KubeRay's own Gateway, so set it to none",
        ),
    ],
)
def test_what_would_not_work_is_refused_in_one_sentence_that_names_the_value(
    name: str, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(HelmRefusedError, match=re.escape(said)) as refused:
        render(values_of(name, **more))
    assert refused.value.kind == "HelmRenderError"


@pytest.mark.parametrize(
    ("more", "place"),
    [
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
    ],
)
def test_a_value_that_is_none_is_refused_by_the_schema(more: dict[str, Any], place: str) -> None:
    with pytest.raises(HelmRefusedError, match=place):
        helm("validate_schema", values_of("pubmed", **more))


def named_values(schema: dict[str, Any], values: Any, place: str = "") -> list[str]:
    """Places of the defaults that the schema does not describe, and the other way round."""
    properties = schema.get("properties")
    if properties is None or not isinstance(values, dict):
        return []
    found = [f"{place}.{key}" for key in set(values) ^ set(properties) - {"global"}]
    for key in set(values) & set(properties):
        found += named_values(properties[key], values[key], f"{place}.{key}")
    return found


def test_the_schema_and_the_defaults_name_the_same_values() -> None:
    schema = json.loads((K8S / "values.schema.json").read_text(encoding="utf-8"))
    optional = {".sizes.", ".models.", ".storage.models"}
    found = named_values(schema, helm("defaults"))
    assert [place for place in found if not any(place.startswith(o) for o in optional)] == []


def test_every_model_of_the_settings_below_is_named_by_its_commit() -> None:
    values = all_values("pubmed")["models"]
    assert set(values) == {"encoder", "recogniser", "reranker", "support", "llm"}
    assert all(len(model["revision"]) == len(COMMIT) for model in values.values())


def test_a_plans_values_are_taken() -> None:
    # What `citeray plan --emit-values` writes.
    planned = {
        "corpus": {"citations": 1_000_000},
        "load": {"questionsPerSecond": 5, "p95Seconds": 2},
        "settings": {"index": {"shards": 4}},
        "sizes": {"retrieval": {"replicas": 2, "maxReplicas": 4, "memory": "24Gi"}},
        "nodes": [],
    }
    objects = render(merge(values_of("pubmed"), planned))
    (settings,) = [
        o["data"]["settings.yaml"] for o in objects if o["metadata"]["name"] == "citeray-settings"
    ]
    assert "shards: 4" in settings
    (service,) = [o for o in objects if o["kind"] == "RayService"]
    retrieval = service["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]
    assert (retrieval["replicas"], retrieval["maxReplicas"]) == (2, 4)
    (budget,) = [o for o in objects if o["metadata"]["name"] == "citeray-retrieval"]
    assert budget["spec"]["minAvailable"] == 1


def test_the_notes_tell_how_to_wait_and_the_key_that_works() -> None:
    text = notes("small/build")
    assert "sh k8s/files/wait.sh rayjob/citeray-build" in text
    text = notes("pubmed")
    assert "wait rayservice/citeray" in text
    assert "get secret citeray-api-keys" in text
    assert "8 x retrieval" in text
