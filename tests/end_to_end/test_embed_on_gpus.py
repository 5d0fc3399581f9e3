"""Placement of encoders on a Ray that declares two GPUs; the models run on the CPU."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.sample.generate_citations import write_generated
from tests.end_to_end.command import run, small_settings

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

CITATIONS, SHARDS = 700, 2


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    write_generated(folder, CITATIONS)
    return folder


@pytest.fixture(scope="module")
def on_gpus(
    tmp_path_factory: pytest.TempPathFactory, source: Path, encoder: Path
) -> tuple[Path, list[dict[str, Any]]]:
    """Build with two encoders and return the records of where each step ran."""
    folder = tmp_path_factory.mktemp("gpus")
    settings = small_settings(folder / "index", encoder, SHARDS)
    settings += ["encoder.device=cpu", "encoder.gpus=1", "encoder.actors=2", "index.build_gpus=0.5"]
    notes = folder / "notes.jsonl"
    command = [sys.executable, "-m", "tests.end_to_end.embed_on_gpus", str(notes), str(source)]
    done = run([*command, *settings])
    assert done.returncode == 0, done.stderr
    return folder / "index", [json.loads(line) for line in notes.read_text().splitlines()]


def test_each_encoder_has_its_own_gpu(on_gpus: tuple[Path, list[dict[str, Any]]]) -> None:
    loaded = [note for note in on_gpus[1] if note["step"] == "load"]
    assert [note["gpu"] for note in loaded] == [1, 1]
    assert sorted(note["devices"] for note in loaded) == [["0"], ["1"]]


def test_passages_are_tokenised_on_cpus_before_they_reach_the_gpus(
    on_gpus: tuple[Path, list[dict[str, Any]]],
) -> None:
    steps = {step: [n for n in on_gpus[1] if n["step"] == step] for step in ("tokenise", "embed")}
    assert steps["tokenise"]
    assert all(note["gpu"] == 0 for note in steps["tokenise"])
    assert not {n["pid"] for n in steps["tokenise"]} & {n["pid"] for n in steps["embed"]}
    assert all("tokens" in note["columns"] for note in steps["embed"])


def test_only_graphs_are_built_with_a_gpu_share(on_gpus: tuple[Path, list[dict[str, Any]]]) -> None:
    assert [note["gpu"] for note in on_gpus[1] if note["step"] == "graph"] == [0.5] * SHARDS
    assert [note["gpu"] for note in on_gpus[1] if note["step"] == "shard"] == [0] * SHARDS
