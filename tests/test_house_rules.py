"""Rules of the house that no single module can show."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cluster", "pipelines", "serve", "evaluation", "planning")
MAY_IMPORT_RAY = {
    "cluster/jobs.py",
    "cluster/session.py",
    "pipelines/embed_sources.py",
    "pipelines/jobs.py",
    "pipelines/train/ray_workers.py",
    "serve/app.py",
    "serve/deployments.py",
    "serve/llm_app.py",
    "serve/ray_meters.py",
}
FORBIDDEN = {
    "cluster": {"pipelines", "serve", "evaluation", "planning"},
    "pipelines": {"serve", "evaluation", "planning"},
    "serve": {"pipelines", "evaluation", "planning"},
    "evaluation": {"pipelines", "planning"},
    "planning": {"evaluation"},
}
MODULES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))


def imported_packages(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    assert not imported_packages(path) & FORBIDDEN[package]


def test_only_the_wiring_imports_ray() -> None:
    found = {str(p.relative_to(ROOT)) for p in MODULES if "ray" in imported_packages(p)}
    assert found == MAY_IMPORT_RAY


@pytest.mark.parametrize("word", ["pickle", "trust_remote_code=True", "allow_pickle=True"])
def test_nothing_unsafe_is_loaded(word: str) -> None:
    guilty = [
        str(p.relative_to(ROOT))
        for p in MODULES
        if word in imported_packages(p) or (("=" in word) and word in p.read_text(encoding="utf-8"))
    ]
    assert guilty == []
