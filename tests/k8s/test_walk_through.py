"""The guide's commands name what is there, and run in an order that works."""

from __future__ import annotations

import base64
import itertools
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documentation import documented_commands
from tests.k8s.chart import (
    APPLIED,
    COMMIT,
    K8S,
    SIZES,
    all_values,
    merge,
    of_kind,
    values_file,
)
from tests.k8s.helm import helm

TEXT = (K8S / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```([a-z]*)\n(.*?)^ *```$", TEXT, re.M | re.S)
SHELL = [block for language, block in BLOCKS if not language]
LINES = [line.strip() for block in SHELL for line in block.splitlines() if line.strip()]
TOOLS = ("kubectl", "helm", "curl", "sh", "citeray")
COMMANDS = [line for line in LINES if line.split()[0] in TOOLS]
(MINE,) = [block for language, block in BLOCKS if language == "yaml"]
HELM = [line for line in COMMANDS if re.match(r"helm (install|upgrade) citeray k8s", line)]


def test_it_has_commands() -> None:
    assert len(COMMANDS) >= 20
    for command in COMMANDS:
        assert shlex.split(command)
    other = [line for line in LINES if line not in COMMANDS]
    assert [line.partition("=")[0] for line in other] == ["KEY"]


def given(command: str) -> Iterator[dict[str, Any]]:
    """The values that a helm command gives, in their order."""
    words = shlex.split(command)
    for flag, word in itertools.pairwise(words):
        if flag == "--set":
            yield helm("parse", word)
        elif flag == "--values":
            path = K8S.parent / word
            if word == "mine.yaml":
                mine = yaml.safe_load(MINE)
                # As the guide says of kind.
                yield {"image": mine["image"]} if "values-kind" in command else mine
            elif word == "sizes.yaml":
                yield {}
            else:
                yield yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", HELM)
@pytest.mark.parametrize("size", SIZES)
def test_what_is_installed_renders_with_the_file_that_it_tells_to_write(
    command: str, size: str
) -> None:
    command = command.replace("values-small", f"values-{size}").replace(
        "values-pubmed", f"values-{size}"
    )
    values: dict[str, Any] = {}
    for more in given(command):
        values = merge(values, more)
    for model in values.get("models", {}).values():
        model["revision"] = model["revision"] or COMMIT
    made = helm("render", values, name="citeray", namespace="citeray")
    kinds = set(re.findall(r"^kind: (\w+)$", "\n".join(made.values()), re.M))
    assert ("RayJob" in kinds) == ("build.enabled=true" in command) or "CronJob" in kinds
    assert ("RayService" in kinds) == ("service.enabled=false" not in command)


def test_the_file_that_it_tells_to_write_is_enough_but_for_the_models_commits() -> None:
    mine = yaml.safe_load(MINE)
    assert set(mine) == {"image", "corpus", "storage"}
    helm("validate_schema", merge(values_file("pubmed"), mine))


def test_what_is_waited_for_is_made() -> None:
    made = {
        f"{obj['kind'].lower()}/{obj['metadata']['name']}"
        for name in APPLIED
        for obj in of_kind(name, "RayJob", "RayService", "CronJob")
    } | {"job/update-now"}
    found = set(re.findall(r"\b((?:rayjob|rayservice|cronjob|job)/[a-z][a-z-]+)", TEXT))
    assert found
    assert found <= made
    assert "kubectl create job update-now --from=cronjob/citeray-update" in TEXT


def test_no_wait_for_a_job_lasts_when_it_has_failed() -> None:
    # `kubectl wait` for one condition does not end when another comes.
    waits = [c for c in COMMANDS if c.startswith("kubectl wait")]
    assert [c for c in waits if "job/" in c] == []
    assert [c for c in COMMANDS if c.startswith("sh ")] == [
        "sh k8s/files/wait.sh rayjob/citeray-build",
        "sh k8s/files/wait.sh job/update-now",
    ]
    assert (K8S / "files/wait.sh").is_file()


def test_the_key_that_it_reads_is_the_one_that_it_makes(tmp_path: Path) -> None:
    (line,) = [line for line in LINES if line.startswith("KEY=")]
    (made,) = [c for c in COMMANDS if "secret generic citeray-api-keys" in c]
    assert '--from-literal=keys="alice:$(openssl rand -hex 32)"' in made
    keys = base64.b64encode(b"alice:0123abcd bob:4567").decode()
    (tmp_path / "kubectl").write_text(f"#!/bin/sh\nprintf %s {keys}\n")
    (tmp_path / "kubectl").chmod(0o755)
    script = f'{line}\necho "$KEY"'
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", script], env=path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0123abcd\n"


def test_nothing_is_torn_down_that_something_else_needs_to_go() -> None:
    down = TEXT.partition("## Tear down")[2]
    order = [
        "kubectl delete rayservice,rayjob",  # KubeRay's clean-up job asks Redis.
        "helm uninstall citeray",
        "kubectl delete pvc",  # The claims that Helm and the StatefulSet leave.
        "kubectl delete namespace citeray",
        "helm uninstall kuberay-operator",
    ]
    places = [down.index(command) for command in order]
    assert places == sorted(places)
    (claim,) = [
        obj
        for obj in of_kind("pubmed", "PersistentVolumeClaim")
        if obj["metadata"]["name"] == "citeray-batches"
    ]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_its_citeray_commands_are_checked_with_those_of_the_other_pages() -> None:
    # tests/test_readme.py parses them with all their options.
    found = [command.words for command in documented_commands() if command.page == "k8s/README.md"]
    assert {words[0] for words in found} == {"plan", "index"}


def test_the_values_files_that_it_names_are_there_and_all_of_them() -> None:
    named = set(re.findall(r"values-[a-z]+\.yaml", TEXT))
    assert named == {path.name for path in K8S.glob("values-*.yaml")}


@pytest.mark.parametrize("size", SIZES)
def test_every_value_that_it_names_is_a_value(size: str) -> None:
    values = all_values(size)
    named = set(re.findall(r"`((?:[a-z]+[A-Z]?[a-zA-Z]*)(?:\.[a-zA-Z]+)+)`", TEXT))
    named = {name for name in named if not name.endswith((".yaml", ".sh"))}
    assert named
    for name in named:
        node: Any = values
        for part in name.split("."):
            assert part in node, name
            node = node[part]


# Cores, memory (GiB) and GPUs of the machines, as their makers state them.
MACHINES = {
    "n2-standard-16": (16, 64, 0),
    "g2-standard-8": (8, 32, 1),
    "g2-standard-16": (16, 64, 1),
    "a3-highgpu-4g": (104, 936, 4),
    "n2-highmem-16": (16, 128, 0),
    "a2-ultragpu-1g": (12, 170, 1),
    "m7i.4xlarge": (16, 64, 0),
    "r7i.4xlarge": (16, 128, 0),
    "g6.2xlarge": (8, 32, 1),
    "g6.4xlarge": (16, 64, 1),
    "g6e.4xlarge": (16, 128, 1),
    "p5.48xlarge": (192, 2048, 8),
}


def test_the_machines_that_it_names_have_what_the_nodes_are_stated_with() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \| ([a-z0-9-]+) \| ([a-z0-9.]+) \|$", TEXT, re.M)
    nodes = {node["name"]: node for node in all_values("pubmed")["nodes"]}
    assert {name for name, _, _ in rows} == set(nodes)
    (small,) = all_values("small")["nodes"]
    pairs = [(nodes[name], machine) for name, *machines in rows for machine in machines]
    pairs += [(small, "a2-ultragpu-1g"), (small, "g6e.4xlarge")]
    for node, machine in pairs:
        cpu, memory, gpu = MACHINES[machine]
        assert machine in TEXT
        assert node["cpu"] <= cpu
        assert int(node["memory"][:-2]) <= memory
        assert node["gpu"] <= gpu


def test_the_volumes_that_it_counts_are_those_that_are_made() -> None:
    (row,) = re.findall(r"^\| volumes, each month \| (\d+) GiB \| (\d+) GiB \|$", TEXT, re.M)
    for name, stated in zip(("small", "pubmed"), row, strict=True):
        storage = all_values(name)["storage"]
        total = sum(int(storage[part]["size"][:-2]) for part in ("batches", "models", "redis"))
        assert total == int(stated)


def test_the_nodes_that_it_states_are_those_of_the_values_files() -> None:
    rows = re.findall(r"^\| `values-(\w+)\.yaml` \| [^|]+ \| 1 of ([^|]+) \|$", TEXT, re.M)
    assert len(rows) == 2
    for name, stated in rows:
        (node,) = all_values(name)["nodes"]
        memory, disk = node["memory"][:-2], node["disk"][:-2]
        assert stated.startswith(f"{node['cpu']} cores, {memory} GiB, {disk} GiB of disk")
        assert ("1 GPU" in stated) == bool(node["gpu"])
