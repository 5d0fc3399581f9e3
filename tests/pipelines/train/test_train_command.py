"""`citeray train` from files to a folder that the service loads, on tiny models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.models.adapters import model_folder
from cluster.models.encoder import Encoder
from cluster.models.store import checksum
from cluster.settings.settings import load_settings
from cluster.settings.stages.expander import RecogniserSettings
from commands.training.train import train
from tests.pipelines.train.tiny_data import tagged_rows, write_corpus, write_lines, write_questions
from tests.tiny_models import make_tiny_encoder

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

QUICK = (
    "steps=60", "batch=2", "rank=4", "dropout=0", "learning_rate=0.005", "head_learning_rate=0.01",
)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("base"))


def run(base: Path, *arguments: object, quick: tuple[str, ...] = QUICK) -> dict[str, Any]:
    """Return the JSON output of `citeray train`; exceptions pass through."""
    changes = [word for change in (*quick, "max_tokens=32") for word in ("--with", change)]
    settings = ["--set", f"encoder.model=file:{base}", "--set", "encoder.max_tokens=32"]
    words = [*map(str, arguments), *changes, *settings, "--json"]
    done = CliRunner().invoke(train, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def tagged(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "tagged.jsonl", tagged_rows())


def test_trained_recogniser_finds_training_entities(base: Path, tmp_path: Path) -> None:
    from serve.question.expand_question import TransformerRecogniser

    file, out = tagged(tmp_path), tmp_path / "ner"
    found = run(base, "ner", file, "--held-out", file, "--out", out, "--licence", "Public domain.")
    assert found["measured"]["F1"] == 1.0
    chosen = RecogniserSettings(kind="transformer", adapter=f"file:{out}")
    entities = TransformerRecogniser(model_folder(chosen)).entities("aspirin treats fever .")
    assert [(e.text, e.kind) for e in entities] == [("aspirin", "Chemical"), ("fever", "Disease")]
    training = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert training["base"] == {"model": f"file:{base}", "sha256": checksum(base)}
    assert training["data"][0]["file"] == "tagged.jsonl"
    assert training["recipe"]["steps"] == 60
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "Public domain." in card
    assert "| F1 | 1.000 |" in card


def test_finished_run_is_reproducible_and_another_recipe_is_refused(
    base: Path, tmp_path: Path
) -> None:
    out = tmp_path / "ner"
    arguments = (base, "ner", tagged(tmp_path), "--out", out)
    run(*arguments)
    before = (out / "adapter_model.safetensors").read_bytes()
    run(*arguments)
    assert (out / "adapter_model.safetensors").read_bytes() == before
    with pytest.raises(InputError, match="train into another folder"):
        run(*arguments, quick=(*QUICK, "seed=3"))
    assert "do not ship these weights" in (out / "README.md").read_text(encoding="utf-8")
    # The adapter is small and in 16 bits.
    header = json.loads(before[8 : 8 + int.from_bytes(before[:8], "little")])
    header.pop("__metadata__")
    assert {entry["dtype"] for entry in header.values()} == {"F16"}
    assert not any("word_embeddings" in name for name in header)


def retrieval_files(tmp_path: Path) -> tuple[Path, Path]:
    corpus = {1: "aspirin treats fever", 2: "the gene inhibits a protein", 3: "bleeding heart"}
    gold = {"which drug treats fever ?": [1], "what inhibits a protein ?": [2]}
    return (
        write_questions(tmp_path / "questions.json", gold),
        write_corpus(tmp_path / "corpus.xml", corpus),
    )


@pytest.mark.parametrize("kind", ["encoder", "reranker"])
def test_trained_encoder_finds_the_citations(base: Path, tmp_path: Path, kind: str) -> None:
    questions, corpus = retrieval_files(tmp_path)
    out = tmp_path / kind
    arguments = (questions, "--corpus", corpus, "--held-out", questions, "--out", out)
    measured = run(base, kind, *arguments)["measured"]
    assert measured["late interaction MAP@10"] == 1.0
    assert measured["dense recall@100"] == 1.0
    chosen = load_settings().encoder.model_copy(
        update={"model": f"file:{base}", "adapter": f"file:{out}"}
    )
    texts = ["aspirin treats fever"]
    tuned = Encoder(model_folder(chosen), dtype="float32").encode(texts)
    assert not np.allclose(tuned, Encoder(base, dtype="float32").encode(texts), atol=1e-3)


def test_mixing_scales_the_adapter_without_further_steps(base: Path, tmp_path: Path) -> None:
    def weights(*changes: str) -> dict[str, np.ndarray]:
        run(base, "ner", tagged(tmp_path), "--out", out, quick=(*QUICK, *changes))
        return load_file(out / "adapter_model.safetensors")

    out = tmp_path / "ner"
    whole, log = weights(), (out / ".training" / "log.jsonl").read_text()
    for name, found in weights("mixing=0.25").items():
        share = 0.25 if "lora_B" in name else 1
        np.testing.assert_allclose(found, whole[name] * np.float16(share), atol=1e-6, err_msg=name)
    assert (out / ".training" / "log.jsonl").read_text() == log
    assert json.loads((out / "training.json").read_text())["recipe"]["mixing"] == 0.25


@pytest.mark.parametrize(
    ("kind", "changes", "workers", "said"),
    [
        ("encoder", ("dense_scale=0", "maxsim_scale=0"), 0, "nothing would be learned"),
        ("reranker", ("rank=0", "mixing=1"), 0, "late interaction needs an adapter"),
        ("encoder", (), 3, "3 workers for batches of 2"),
    ],
)
def test_invalid_training_options_are_refused(
    base: Path, tmp_path: Path, kind: str, changes: tuple[str, ...], workers: int, said: str
) -> None:
    questions, corpus = retrieval_files(tmp_path)
    files = (questions, "--corpus", corpus, "--out", tmp_path / "o", "--workers", workers)
    with pytest.raises(InputError, match=said):
        run(base, kind, *files, quick=(*QUICK, *changes))
