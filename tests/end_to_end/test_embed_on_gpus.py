"""Placement of encoders on a Ray that declares two GPUs; the models run on the CPU."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.sample.generate_citations import write_generated
from tests.end_to_end.command import run, small_settings

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

SHARDS = 2
# The notes of each step.
Notes = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Notes:
    """Build with two encoders and return the records of where each step ran."""
    folder = tmp_path_factory.mktemp("gpus")
    write_generated(folder / "source", 700)
    settings = small_settings(folder / "index", encoder, SHARDS)
    settings += ["encoder.device=cpu", "encoder.gpus=1", "encoder.actors=2", "index.build_gpus=0.5"]
    file = folder / "notes.jsonl"
    command = [sys.executable, "-m", "tests.end_to_end.embed_on_gpus", str(file)]
    done = run([*command, str(folder / "source"), *settings])
    assert done.returncode == 0, done.stderr
    found: Notes = {}
    for line in file.read_text().splitlines():
        note = json.loads(line)
        found.setdefault(note["step"], []).append(note)
    return found


def test_each_encoder_has_its_own_gpu(notes: Notes) -> None:
    assert [note["gpu"] for note in notes["load"]] == [1, 1]
    assert sorted(note["devices"] for note in notes["load"]) == [["0"], ["1"]]


def test_passages_are_tokenised_on_cpus_before_they_reach_the_gpus(notes: Notes) -> None:
    assert {note["gpu"] for note in notes["tokenise"]} == {0}
    assert not {n["pid"] for n in notes["tokenise"]} & {n["pid"] for n in notes["embed"]}
    assert all("tokens" in note["columns"] for note in notes["embed"])


def test_only_graphs_are_built_with_a_gpu_share(notes: Notes) -> None:
    assert [note["gpu"] for note in notes["graph"]] == [0.5] * SHARDS
    assert [note["gpu"] for note in notes["shard"]] == [0] * SHARDS
