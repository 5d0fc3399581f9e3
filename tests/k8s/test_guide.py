"""The commands of k8s/README.md render, and name objects that are created."""

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
    SECRETS,
    SIZES,
    merge,
    render,
    rendered,
)
from tests.k8s.helm import K8S, helm

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
