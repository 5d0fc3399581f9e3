"""The commands of k8s/README.md: they parse, render, and name objects that are created."""

from __future__ import annotations

import base64
import itertools
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.k8s.chart import (
    CASES,
    COMMIT,
    SECRETS,
    SIZES,
    all_values,
    merge,
    named,
    render,
    rendered,
    values_of,
)
from tests.k8s.helm import K8S, helm

pytestmark = pytest.mark.process

TEXT = (K8S / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```([a-z]*)\n(.*?)^ *```$", TEXT, re.M | re.S)
(MINE,) = [yaml.safe_load(block) for language, block in BLOCKS if language == "yaml"]
LINES = [line.strip() for language, block in BLOCKS if not language for line in block.splitlines()]
COMMANDS = [line for line in LINES if line and not line.startswith("KEY=")]


def position(start: str) -> int:
    (found,) = [number for number, line in enumerate(COMMANDS) if line.startswith(start)]
    return found


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


def test_guide_states_the_nodes_and_volumes_of_the_values() -> None:
    rows = dict(re.findall(r"^\| `values-(\w+)\.yaml` \| [^|]+ \| 1 of ([^|]+) \|$", TEXT, re.M))
    assert set(rows) == {"kind", "small"}
    for name, row in rows.items():
        (node,) = all_values(name)["nodes"]
        stated = f"{node['cpu']} cores, {node['memory'][:-2]} GiB, {node['disk'][:-2]} GiB of disk"
        assert row.startswith(stated)
        assert ("1 GPU" in row) == bool(node["gpu"])
    (volumes,) = re.findall(r"^\| volumes, each month \| (\d+) GiB \| (\d+) GiB \|$", TEXT, re.M)
    for name, stated in zip(("small", "pubmed"), volumes, strict=True):
        storage = all_values(name)["storage"]
        parts = ("batches", "models", "redis")
        assert sum(int(storage[part]["size"][:-2]) for part in parts) == int(stated), name


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
    # `kubectl wait` for success would not end when a job fails; wait.sh does.
    assert not [c for c in COMMANDS if c.startswith("kubectl wait") and "job/" in c]
    assert "job-name=citeray-build" in COMMANDS[position("kubectl logs")]


def test_commands_are_in_an_order_that_works() -> None:
    order = [
        "helm repo add kuberay", "helm install kuberay-operator", "kubectl create namespace",
        "kubectl config set-context --current --namespace citeray",
        "kubectl create secret generic citeray-ray-token", "helm install citeray k8s --values k8s/"
        "values-small", "sh k8s/files/wait.sh rayjob/citeray-build", "helm upgrade citeray",
        "kubectl wait rayservice/citeray", "kubectl port-forward", "kubectl delete job update-now",
        "kubectl create job update-now", "sh k8s/files/wait.sh job/update-now",
        # KubeRay clears Redis of the head's state, so Redis and the operator go after Ray.
        "kubectl delete rayservice,rayjob", "helm uninstall citeray", "kubectl delete pvc",
        "kubectl delete namespace citeray", "helm uninstall kuberay-operator",
    ]  # fmt: skip
    places = [position(command) for command in order]
    assert places == sorted(places)
    claim = named("pubmed", "PersistentVolumeClaim", "citeray-batches")
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_key_is_read_from_the_secret_that_the_guide_creates(tmp_path: Path) -> None:
    (line,) = [line for line in LINES if line.startswith("KEY=")]
    made = COMMANDS[position("kubectl create secret generic citeray-api-keys")]
    assert '--from-literal=keys="alice:$(openssl rand -hex 32)"' in made
    keys = base64.b64encode(b"alice:0123abcd bob:4567").decode()
    (tmp_path / "kubectl").write_text(f"#!/bin/sh\nprintf %s {keys}\n")
    (tmp_path / "kubectl").chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", f'{line}\necho "$KEY"'], capture_output=True, text=True, check=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout == "0123abcd\n"


def test_values_and_files_that_the_guide_names_exist() -> None:
    files = set(re.findall(r"values-[a-z]+\.yaml", TEXT))
    assert files == {path.name for path in K8S.glob("values-*.yaml")}
    places = set(re.findall(r"`((?:[a-z]+[A-Z]?[a-zA-Z]*)(?:\.[a-zA-Z]+)+)`", TEXT))
    for place in {p for p in places if not p.endswith((".yaml", ".sh"))}:
        node: Any = all_values("pubmed")
        for part in place.split("."):
            assert part in node, place
            node = node[part]


def test_notes_name_the_commands_that_follow() -> None:
    for case, *wanted in (
        ("small/build", "sh k8s/files/wait.sh rayjob/citeray-build"),
        ("pubmed", "wait rayservice/citeray", "get secret citeray-api-keys", "8 x retrieval"),
    ):
        files = helm("render", values_of(case), name="citeray", namespace="citeray")
        (notes,) = [text for path, text in files.items() if path.endswith("NOTES.txt")]
        assert [text for text in wanted if text not in notes] == []
