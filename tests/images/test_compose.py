"""Checks of compose.yaml that need no Docker."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from compose_spec import PyOptions

from cluster.settings.settings import load_settings
from tests.images.containerfile import ROOT
from tests.images.test_containerfiles import locked

TEXT = (ROOT / "compose.yaml").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


def test_compose_file_matches_the_specification() -> None:
    PyOptions(apply_merge=True).from_yaml(DEFAULT.sub(r"\1", TEXT)).validate()


def test_ports_are_published_on_loopback_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_settings_of_the_service_exist() -> None:
    words = [DEFAULT.sub(r"\1", word) for word in SERVICES["citeray"]["command"]]
    overrides = [word for word in words if "=" in word]
    settings = load_settings(overrides=overrides)
    assert words[:2] == ["citeray", "serve"]
    assert (settings.serve.host, settings.llm.kind) == ("0.0.0.0", "none")
    asked = [word.replace("llm.kind=none", "llm.kind=url") for word in overrides]
    assert load_settings(overrides=asked).llm.model_id == "Qwen/Qwen2.5-1.5B-Instruct"


def test_mounts_exist_or_are_volumes(subtests: pytest.Subtests) -> None:
    for service in SERVICES:
        with subtests.test(service=service):
            for mount in SERVICES[service].get("volumes", ()):
                source = mount.split(":")[0]
                there = (
                    (ROOT / source).exists()
                    if source.startswith(".")
                    else source in COMPOSE["volumes"]
                )
                assert there, source
            for config in SERVICES[service].get("configs", ()):
                assert yaml.safe_load(COMPOSE["configs"][config["source"]]["content"])


def test_vllm_image_has_the_locked_version() -> None:
    assert SERVICES["llm"]["image"] == f"vllm/vllm-openai:v{locked('gpu.txt')['vllm']}"
