"""The walk-through's commands name what is there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from tests.k8s.overlays import APPLIED, K8S, of_kind

TEXT = (K8S / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```\n(.*?)^ *```$", TEXT, re.M | re.S)
LINES = [line.strip() for block in BLOCKS for line in block.splitlines() if line.strip()]
COMMANDS = [line for line in LINES if line.split()[0] in ("kubectl", "helm", "docker", "curl")]


def test_it_has_commands() -> None:
    assert len(COMMANDS) >= 18
    for command in COMMANDS:
        assert shlex.split(command)


@pytest.mark.parametrize("command", [c for c in COMMANDS if " -k " in c])
def test_what_is_applied_and_deleted_is_an_overlay(command: str) -> None:
    words = shlex.split(command)
    folder = words[words.index("-k") + 1].removeprefix("k8s/overlays/")
    assert folder in APPLIED


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("docker build")])
def test_what_is_built_is_there(command: str) -> None:
    words = shlex.split(command)
    assert (K8S.parent / words[words.index("-f") + 1]).is_file()


def test_what_is_waited_for_is_made() -> None:
    made = {
        f"{obj['kind'].lower()}/{obj['metadata']['name']}"
        for name in APPLIED
        for obj in of_kind(name, "RayJob", "RayService", "CronJob")
    }
    named = set(re.findall(r"\b((?:rayjob|rayservice|cronjob)/[a-z-]+)", TEXT))
    assert named
    assert named <= made


def test_its_citeray_commands_are_commands() -> None:
    named = set(re.findall(r"`citeray ([a-z]+(?: [a-z]+)?)", TEXT))
    assert {"plan", "index compact"} <= named
    for words in named:
        command = [sys.executable, "-m", "commands.cli", *words.split(), "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_folders_that_it_lists_are_there() -> None:
    listed = re.findall(r"^([a-z]+)/ {2,}\S", TEXT, re.M)
    assert set(listed) | {"build", "update"} == {p.name for p in K8S.iterdir() if p.is_dir()}
