"""Shipped files hold no secrets, and SECURITY.md names existing tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("k8s", "images", "configs", "requirements", ".ci", "cluster", "pipelines", "serve")
KINDS = {"", ".yaml", ".yml", ".json", ".toml", ".sh", ".env", ".py", ".tpl", ".txt", ".md"}
FILES = sorted(
    path
    for folder in SHIPPED
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix in KINDS and "__pycache__" not in path.parts
)
FORMS = re.compile(
    r"AKIA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY-----|\bsk-[A-Za-z0-9_-]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{36}|\bhf_[A-Za-z0-9]{30,}"
    r"|(?m:^\s*(?:ENV|ARG|export)\s+\w*(?:KEYS?|TOKEN|SECRET|PASSWORD)[= ]+[^\s$\"'{]+)"
)
SECRET_NAME = re.compile(r"(KEYS?|TOKEN|SECRET|PASSWORD)$")


def secrets_given(value: Any) -> Iterator[str]:
    """Yield the places of a manifest that contain the value of a secret."""
    if isinstance(value, list):
        for each in value:
            yield from secrets_given(each)
    if not isinstance(value, dict):
        return
    if value.get("kind") == "Secret" and any(
        {**(value.get("data") or {}), **(value.get("stringData") or {})}.values()
    ):
        yield f"Secret {value.get('metadata', {}).get('name')}"
    if SECRET_NAME.search(str(value.get("name", ""))) and value.get("value"):
        yield str(value["name"])
    for each in value.values():
        yield from secrets_given(each)


def secrets_in(path: Path) -> list[str]:
    """Return the secrets in a file: texts that look like keys, and values in a manifest."""
    text = path.read_text(encoding="utf-8")
    found = FORMS.findall(text)
    if path.suffix in {".yaml", ".yml"} and "{{" not in text:
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            found += secrets_given(document)
    return found


@pytest.mark.slow
def test_no_file_that_ships_holds_a_secret() -> None:
    held = {str(p.relative_to(ROOT)): found for p in FILES if (found := secrets_in(p))}
    assert held == {}


def test_secret_value_in_a_manifest_is_detected_but_a_reference_is_not() -> None:
    for text in (
        "kind: Secret\nmetadata: {name: ray}\nstringData: {auth_token: abc}",
        "env: [{name: CITERAY_API_KEYS, value: 'alice:abc'}]",
        "spec:\n  containers:\n  - env:\n    - {name: RAY_AUTH_TOKEN, value: abc}",
    ):
        assert list(secrets_given(yaml.safe_load(text)))
    named = "env: [{name: RAY_AUTH_TOKEN, valueFrom: {secretKeyRef: {name: ray, key: token}}}]"
    assert not list(secrets_given(yaml.safe_load(named)))


def test_tests_named_in_the_security_page_exist() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:tests/)?[\w/]*test_\w+\.py|tests/[\w/]+/)`", page))
    assert len(named) > 8
    tree = [path.as_posix() for path in ROOT.glob("tests/**/*")]
    lost = {n for n in named if not any(path.endswith(f"/{n.rstrip('/')}") for path in tree)}
    assert lost == set()
    functions = set(re.findall(r"`(test_\w+)`", page))
    assert len(functions) > 50
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py"))
    defined = set(re.findall(r"^(?:async )?def (test_\w+)", sources, re.M))
    assert functions - defined == set()
