"""Commands of k8s/README.md render, and wrong values are refused with a fix."""

from __future__ import annotations

import itertools
import re
import shlex
from typing import Any

import pytest
import yaml

from tests.k8s.chart import (
    CASES,
    COMMIT,
    INCREMENTAL,
    NAMESPACE,
    SECRETS,
    SIZES,
    merge,
    render,
    rendered,
    values_of,
)
from tests.k8s.helm import K8S, HelmRefusedError, helm

pytestmark = pytest.mark.process


TEXT = (K8S / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```([a-z]*)\n(.*?)^ *```$", TEXT, re.M | re.S)
(MINE,) = [yaml.safe_load(block) for language, block in BLOCKS if language == "yaml"]
LINES = [line.strip() for language, block in BLOCKS if not language for line in block.splitlines()]
COMMANDS = [line for line in LINES if line and not line.startswith("KEY=")]


def test_helm_commands_render() -> None:
    """Render each command with its values files and options, for each size of the chart."""
    commands = [c for c in COMMANDS if re.match(r"helm (install|upgrade) citeray k8s ", c)]
    assert len(commands) == 3
    assert set(MINE) == {"image", "corpus", "storage"}
    for command, size in itertools.product(commands, SIZES):
        values: dict[str, Any] = {}
        for flag, word in itertools.pairwise(shlex.split(command)):
            more: dict[str, Any] = {}
            if flag == "--set":
                more = helm("parse", word)
            elif flag == "--values" and word == "mine.yaml":
                # "In kind, ./mine.yaml needs `image` alone."
                more = {"image": MINE["image"]} if size == "kind" else MINE
            elif flag == "--values" and word != "sizes.yaml":  # the output of `citeray plan`
                path = re.sub(r"values-(small|pubmed)", f"values-{size}", word)
                more = yaml.safe_load((K8S.parent / path).read_text(encoding="utf-8"))
            values = merge(values, more)
        for model in values.get("models", {}).values():
            model["revision"] = model["revision"] or COMMIT
        kinds = {obj["kind"] for obj in render(values)}
        builds = "build.enabled=true" in command
        assert ("RayService" in kinds) != builds, (command, size)
        assert ("CronJob" in kinds) == (not builds and size != "kind"), (command, size)
        assert ("RayJob" in kinds) == (builds or size != "kind"), (command, size)


def test_objects_that_the_commands_name_are_created() -> None:
    there = {
        f"{obj['kind'].lower()}/{obj['metadata']['name']}" for c in CASES for obj in rendered(c)
    }
    there |= {"job/update-now", "service/citeray-serve-svc"}  # by the guide, and by KubeRay
    kinds = "rayjob|rayservice|cronjob|job|service"
    found = set(re.findall(rf"\b((?:{kinds})/[a-z][a-z-]+)", "\n".join(COMMANDS)))
    assert len(found) >= 5
    assert found <= there
    made = {re.split(r"[ =]", c)[4] for c in COMMANDS if c.startswith("kubectl create secret")}
    assert made == set(SECRETS)


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
