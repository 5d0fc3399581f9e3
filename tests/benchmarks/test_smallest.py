"""Smoke test: every benchmark runs at its smallest size."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from shutil import which

import pytest

from tests.end_to_end.command import ROOT, run

# All modules of the folder, so that a new benchmark cannot be forgotten.
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("bench_*.py"))
TIMEOUT_S = 1000
# Packages of requirements/peers.txt, which the Makefile installs into a separate folder.
PEERS = ROOT / "build/peers"


def package(name: str) -> tuple[str, Callable[[], bool]]:
    folders = [*sys.path, str(PEERS)]
    return f"the Python package {name}", lambda: PathFinder.find_spec(name, folders) is not None


def program(name: str) -> tuple[str, Callable[[], bool]]:
    return f"the program {name}", lambda: which(name) is not None


HAYSTACK = (package("haystack"), package("haystack_integrations"))
# Requirements that `make test` does not install everywhere.
NEEDS: Mapping[str, tuple[tuple[str, Callable[[], bool]], ...]] = {
    "bench_haystack": HAYSTACK,
    "bench_llm": (package("vllm"),),
    "bench_page": (program("chromium"),),
    "bench_parse": (package("pubmed_parser"),),
    "bench_peers": (*HAYSTACK, package("pylate"), package("pubmed_parser")),
}


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the benchmarks share the sample corpus and its index."""
    return tmp_path_factory.mktemp("smallest")


@pytest.mark.nightly
@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("module", MODULES)
def test_benchmark_runs_at_its_smallest_size(module: str, inputs: Path) -> None:
    missing = [name for name, is_there in NEEDS.get(module, ()) if not is_there()]
    if missing:
        pytest.skip(f"{module} needs {' and '.join(missing)}, missing on this machine")
    command = [sys.executable, "-m", f"benchmarks.{module}", "--smallest", str(inputs)]
    paths = os.pathsep.join((str(ROOT), str(PEERS)))
    done = run(command, {"PYTHONPATH": paths}, timeout_s=TIMEOUT_S)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert done.stdout.strip(), "the benchmark printed no figure"
