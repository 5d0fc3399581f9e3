from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu_check import BATCHES
from tests.tiny_models import MAX_TOKENS, make_tiny_encoder

pytestmark = pytest.mark.model

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.mark.nightly
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
