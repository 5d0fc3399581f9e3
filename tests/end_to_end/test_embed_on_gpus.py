"""Encoders that are given GPUs, on a Ray that only believes in them: the models run on the CPU."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.index.layout import VECTORS, segment_directory
from cluster.index.manifest import read_manifest
from cluster.index.vectors import VectorIndex
from pipelines.sample.generate_citations import write_generated
from tests.end_to_end.command import BIN, run, small_settings, with_settings

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
    """An index built by two encoders with a GPU each, and the notes of what ran where."""
    folder = tmp_path_factory.mktemp("gpus")
    settings = small_settings(folder / "index", encoder, SHARDS)
    settings += ["encoder.device=cpu", "encoder.gpus=1", "encoder.actors=2", "index.build_gpus=0.5"]
    notes = folder / "notes.jsonl"
    command = [sys.executable, "-m", "tests.end_to_end.embed_on_gpus", str(notes), str(source)]
    done = run([*command, *settings])
    assert done.returncode == 0, done.stderr
    return folder / "index", [json.loads(line) for line in notes.read_text().splitlines()]


def vectors_of(index: Path) -> np.ndarray:
    readers = [
        VectorIndex(index / segment_directory(n, segment.id) / VECTORS, 64, 10**9)
        for n, shard in enumerate(read_manifest(index).shards)
        for segment in shard.segments
    ]
    return np.concatenate([reader.stored(np.arange(reader.size)) for reader in readers])


def test_an_encoder_with_a_gpu_gives_the_vectors_of_one_without(
    on_gpus: tuple[Path, list[dict[str, Any]]], source: Path, encoder: Path, tmp_path: Path
) -> None:
    command = [str(BIN / "citeray"), "index", "build", str(source)]
    done = run(with_settings(command, small_settings(tmp_path / "index", encoder, SHARDS)))
    assert done.returncode == 0, done.stderr
    with_gpu, without = vectors_of(on_gpus[0]), vectors_of(tmp_path / "index")
    assert len(without) >= CITATIONS
    # Staged as 16-bit floats, each side may round the other way.
    np.testing.assert_allclose(with_gpu, without, atol=1e-3)


def test_each_encoder_has_a_gpu_of_its_own(on_gpus: tuple[Path, list[dict[str, Any]]]) -> None:
    loaded = [note for note in on_gpus[1] if note["step"] == "load"]
    assert [note["gpu"] for note in loaded] == [1, 1]
    assert sorted(note["devices"] for note in loaded) == [["0"], ["1"]]


def test_passages_are_tokenised_beside_the_gpus_and_reach_them_as_ids(
    on_gpus: tuple[Path, list[dict[str, Any]]],
) -> None:
    steps = {step: [n for n in on_gpus[1] if n["step"] == step] for step in ("tokenise", "embed")}
    assert steps["tokenise"]
    assert all(note["gpu"] == 0 for note in steps["tokenise"])
    assert not {n["pid"] for n in steps["tokenise"]} & {n["pid"] for n in steps["embed"]}
    assert all("tokens" in note["columns"] for note in steps["embed"])


def test_each_shards_graph_has_its_share_of_a_gpu(
    on_gpus: tuple[Path, list[dict[str, Any]]],
) -> None:
    assert [note["gpu"] for note in on_gpus[1] if note["step"] == "shard"] == [0.5] * SHARDS
