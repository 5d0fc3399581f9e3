"""Smoke test: every benchmark runs at its smallest size, and the GPU check on a CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from shutil import which

import pytest

from benchmarks.gpu_check import BATCHES
from tests.end_to_end.command import ROOT, run
from tests.tiny_models import MAX_TOKENS, make_tiny_encoder

pytestmark = pytest.mark.nightly

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


# Hides packages as if they were not installed, then runs the check.
WITHOUT_PACKAGES = """
import runpy, sys
from importlib.machinery import PathFinder

class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, *rest):
        hidden = name.partition(".")[0] in {"ray", "vllm", "tantivy", "faiss", "openvino"}
        return None if hidden else super().find_spec(name, *rest)

sys.meta_path[sys.meta_path.index(PathFinder)] = Bare
runpy.run_module("benchmarks.gpu_check", run_name="__main__", alter_sys=True)
"""


def test_gpu_check_runs_on_a_cpu_without_ray_vllm_tantivy_and_faiss(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_PACKAGES, "--device", "cpu", "--out", str(tmp_path)]
    encoder = f"encoder.model=file:{make_tiny_encoder(tmp_path)}"
    command += ["--set", encoder, "--set", f"encoder.max_tokens={MAX_TOKENS}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for folder in (tmp_path, tmp_path / "base"):
        figures = json.loads((folder / "coefficients.json").read_text())
        assert figures.pop("kind") == "gpu-coefficients"
        assert figures.pop("device") == "cpu"
        # Only a GPU has memory of its own.
        assert figures.pop("memory_bytes") is None
        for name in ("encoder_documents_per_s", "encoder_documents_per_s_with_tokens"):
            speeds = figures.pop(name)
            assert list(speeds) == [str(batch) for batch in BATCHES]
            assert min(speeds.values()) > 0
        assert figures.keys() == {"cross_encoder_pairs_per_s", "mean_tokens_per_document"}
        assert min(figures.values()) > 0
