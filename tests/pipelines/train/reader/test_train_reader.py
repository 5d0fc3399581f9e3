"""`citeray train reader` from files to an adapter, on a tiny model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors import safe_open
from transformers import AutoTokenizer

from cluster.errors import InputError
from cluster.models.adapters import model_folder
from cluster.models.reader import Reader
from cluster.models.readings import Reading, ScoredSpan
from cluster.settings.settings import load_settings
from pipelines.train.adapt import save_model
from pipelines.train.reader import measure_reader as measuring
from pipelines.train.reader.bioasq import read_answered
from pipelines.train.reader.make_examples import ReaderData, make_examples
from pipelines.train.reader.measure_reader import measure_reader
from pipelines.train.reader.train_reader import (
    ReaderJob,
    extract_adapter,
    load_base,
    mean_weights,
    train_reader,
)
from pipelines.train.recipe import ReaderRecipe, read_recipe
from pipelines.train.run_trainer import STATE
from tests.pipelines.train.tiny_data import FINDING, gold_row, write_corpus, write_gold, write_lines
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model

RANK = 4
LIMITS: dict[str, Any] = {"max_tokens": 48, "batch_size": 2}
TEXTS = {
    1: "Aspirin reduces fever in patients. The study is in blood.",
    2: "A gene inhibits the protein in a cell. The heart is not treated.",
    3: "Bleeding causes a tumour in patients.",
}
LOSSES = "losses: {relevance: 0.7, stance: 2.0, sentences: 0.7, names: 1.0}"
KINDS = "yesno: 4, other: 3, trials: 2, propositions: 4, attributes: 4, claims: 3, mentions: 2"
MIXED = f"{{learning_rate: 6.0e-5, {KINDS}, {LOSSES}}}"
SIDED = f"{{learning_rate: 3.0e-5, abstracts: 2, yesno: 2, frozen_layers: 1, {LOSSES}}}"


def recipe(*changes: str) -> ReaderRecipe:
    quick = ("tokens=256", "max_tokens=48", "hardest=2", f"rank={RANK}")
    return read_recipe(ReaderRecipe, "reader", [*quick, f"passes=[{MIXED}, {SIDED}]", *changes])


def data(path: Path, **changes: Any) -> ReaderData:
    factoid = {"body": "What reduces fever?", "type": "factoid", "exact_answer": [["aspirin"]]}
    asked = [{"question": "Does the gene inhibit it?", "answer": "maybe", "pmid": 2}]
    corpus = write_corpus(path / "corpus.xml", TEXTS)
    questions = write_gold(path / "q.json", gold_row(), gold_row(**factoid))
    known = ReaderData(
        questions=(questions,),
        corpus=(corpus,),
        abstract_questions=write_gold(path / "abstract.json", *asked),
        findings=write_lines(path / "findings.jsonl", [FINDING]),
        abstracts=(corpus,),
        held_out=(questions,),
    )
    return replace(known, **changes)


def test_pass_has_the_number_of_examples_in_the_recipe(tmp_path: Path) -> None:
    first, second = make_examples(data(tmp_path), recipe())
    assert (len(first), len(second)) == (22, 4)
    assert {e.question for e in first} >= {"Does aspirin reduce fever?", "What reduces fever?"}
    asked = {e.question for e in second}
    assert asked == {"Does the gene inhibit it?", "Does aspirin reduce fever?"}
    # Kinds without files are omitted.
    plain = data(tmp_path, abstract_questions=None, findings=None, abstracts=())
    assert [len(part) for part in make_examples(plain, recipe())] == [20, 2]
    assert make_examples(data(tmp_path), recipe()) == [first, second]


def test_pass_without_examples_is_refused(tmp_path: Path) -> None:
    alone = f"passes=[{{learning_rate: 3.0e-5, trials: 2, {LOSSES}}}]"
    with pytest.raises(InputError, match="pass 1 has no examples"):
        make_examples(data(tmp_path, findings=None), recipe(alone))


def test_articles_of_the_written_questions_are_needed(tmp_path: Path) -> None:
    plain = {"abstract_questions": None, "findings": None, "abstracts": ()}
    for kind, option in (
        ("articles", "abstracts"),
        ("background", "abstracts"),
        ("wordings", "corpus"),
        ("named", "corpus"),
    ):
        asked = recipe(f"passes=[{{learning_rate: 3.0e-5, {kind}: 2, yesno: 2, {LOSSES}}}]")
        missing = rf"{kind}\.jsonl: \d+ articles are in no file of --{option}"
        for changes in ({}, plain):
            with pytest.raises(InputError, match=missing):
                make_examples(data(tmp_path, **changes), asked)


def test_missing_abstracts_are_reported_with_a_pmid(tmp_path: Path) -> None:
    other = write_corpus(tmp_path / "other.xml", {3: TEXTS[3]})
    for missing, changes in [(1, {}), (2, {"findings": None})]:
        known = data(tmp_path, abstracts=(other,), **changes)
        with pytest.raises(InputError, match=rf"--abstracts \(PMID {missing} is the first\)"):
            make_examples(known, recipe())


def load_reader(base: Path, adapter: Path) -> Reader:
    chosen = load_settings().reader.model_copy(
        update={"model": f"file:{base}", "adapter": f"file:{adapter}", "sha256": ""}
    )
    return Reader.load(model_folder(chosen), device="cpu", dtype="float32", **LIMITS)


def changed(folder: Path) -> Any:
    """Return the model with a change of RANK to each matrix, and another head."""
    torch.manual_seed(1)
    model = load_base(folder)
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            if ".layer." in name and parameter.ndim == 2:
                a, b = (torch.randn(n, RANK) for n in parameter.shape)
                parameter += 0.05 * a @ b.T
            elif name.startswith("classifier"):
                parameter += torch.randn_like(parameter)
    return model.eval()


def test_extracted_adapter_computes_the_same_as_the_trained_model(tmp_path: Path) -> None:
    base, out = make_tiny_encoder(tmp_path), tmp_path / "adapter"
    trained = changed(base)
    out.mkdir()
    adapted = extract_adapter(load_base(base), trained, RANK)
    save_model(adapted.base_model.model, None, adapted, f"file:{base}", out)
    direct = Reader(trained, AutoTokenizer.from_pretrained(base), **LIMITS)
    texts = ["aspirin treats fever .", "the heart " * 60]
    readings = (reader.read("what ?", texts) for reader in (load_reader(base, out), direct))
    for found, wanted in zip(*readings, strict=True):
        # The adapter is written in 16 bits.
        assert found.relevance == pytest.approx(wanted.relevance, abs=0.01)
        assert found.no == pytest.approx(wanted.no, abs=0.01)
        assert [s.end for s in found.sentences] == [s.end for s in wanted.sentences]


@pytest.mark.slow
def test_trained_adapter_loads_as_reader_and_a_rerun_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = make_tiny_encoder(tmp_path)
    encoder = load_settings().encoder.model_copy(
        update={"model": f"file:{base}", "sha256": "", "threads": 1}
    )
    out = tmp_path / "out"
    job = ReaderJob(recipe("checkpoint_every=1"), encoder, data(tmp_path), out)
    lines: list[str] = []
    measured = train_reader(job, "Public domain.", lines.append)
    assert set(measured) == {"yes/no macro F1", "factoid first right", "names F1"}
    assert all(0 <= value <= 1 for value in measured.values())
    assert [line for line in lines if line.startswith("pass")] == [
        "pass 1 of 2: 22 examples",
        "pass 2 of 2: 4 examples",
    ]
    written = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert written["base"]["model"] == f"file:{base}"
    assert [row["file"] for row in written["data"]] == [
        "q.json",
        "corpus.xml",
        "abstract.json",
        "findings.jsonl",
        "corpus.xml",
    ]
    assert "Public domain." in (out / "README.md").read_text(encoding="utf-8")
    [found] = load_reader(base, out).read("what reduces fever ?", [TEXTS[1]])
    assert len(found.sentences) == 2
    assert capsys.readouterr().out == ""
    # Both passes are complete: a second run trains no step and writes the same adapter.
    steps = sorted(path.name for path in (out / STATE).glob("*/checkpoint-*"))
    before = (out / "adapter_model.safetensors").read_bytes()
    (out / "adapter_model.safetensors").unlink()
    assert train_reader(job, "Public domain.", lines.append) == measured
    assert sorted(path.name for path in (out / STATE).glob("*/checkpoint-*")) == steps
    assert (out / "adapter_model.safetensors").read_bytes() == before
    other = replace(job, recipe=recipe("checkpoint_every=1", "seed=1"))
    with pytest.raises(InputError, match="another recipe or another base model"):
        train_reader(other, "Public domain.", lines.append)


@pytest.mark.slow
def test_reader_is_trained_further_by_an_adapter_of_its_upper_layers(tmp_path: Path) -> None:
    base, first, second = make_tiny_encoder(tmp_path), tmp_path / "first", tmp_path / "second"
    encoder = load_settings().encoder.model_copy(
        update={"model": f"file:{base}", "sha256": "", "threads": 1}
    )
    said = list[str]().append
    train_reader(ReaderJob(recipe(), encoder, data(tmp_path), first), "", said)
    on_first, on_second = (
        encoder.model_copy(update={"model": f"file:{folder}"}) for folder in (first, second)
    )
    changes = ("averaged=1", "rank=2", r"targets='.*\.layer\.1\..*(query|dense)'")
    upper = recipe(*changes, f"passes=[{MIXED}, {SIDED}]", "checkpoint_every=1")
    job = ReaderJob(upper, on_first, data(tmp_path), second)
    train_reader(job, "", said)
    written = json.loads((second / "training.json").read_text(encoding="utf-8"))
    assert written["before"] == json.loads((first / "training.json").read_text(encoding="utf-8"))
    with safe_open(second / "adapter_model.safetensors", framework="np") as weights:
        named = set(weights.keys())
    assert {re.sub(r".*layer\.(\d).*", r"\1", name) for name in named if ".layer." in name} == {"1"}
    # It is merged on top of the first adapter.
    tokenizer, limits = AutoTokenizer.from_pretrained(base), {"max_tokens": 48, "batch_size": 2}
    below = load_base(model_folder(on_first))
    before = Reader(below, tokenizer, **limits).read("what reduces fever ?", [TEXTS[1]])
    direct = PeftModel.from_pretrained(below, str(second)).eval()
    wanted = Reader(direct, tokenizer, **limits).read("what reduces fever ?", [TEXTS[1]])
    merged = Reader.load(model_folder(on_second), device="cpu", dtype="float32", **limits)
    [found] = merged.read("what reduces fever ?", [TEXTS[1]])
    assert found.relevance == pytest.approx(wanted[0].relevance, abs=1e-4)
    assert found.relevance != pytest.approx(before[0].relevance, abs=1e-4)
    # A second run resumes after the last step, and writes the same adapter.
    known = (second / "adapter_model.safetensors").read_bytes()
    (second / "adapter_model.safetensors").unlink()
    train_reader(job, "", said)
    assert (second / "adapter_model.safetensors").read_bytes() == known


def test_base_of_a_reader_is_a_plain_model_or_another_reader(tmp_path: Path) -> None:
    encoder = load_settings().encoder.model_copy(update={"sha256": ""})
    other = encoder.model_copy(update={"model": "citeray:chemical-disease"})
    with pytest.raises(InputError, match="citeray:chemical-disease is an adapter, but no reader"):
        train_reader(ReaderJob(recipe(), other, data(tmp_path), tmp_path / "out"), "", print)
    base = make_tiny_encoder(tmp_path)
    itself = encoder.model_copy(update={"model": f"file:{base}"})
    with pytest.raises(InputError, match="is the base model: write the reader to another folder"):
        train_reader(ReaderJob(recipe(), itself, data(tmp_path), base), "", print)


class Says:
    """Reader stub: names aspirin in every text and answers yes."""

    def __init__(self, model: Any, tokenizer: Any, **_: Any) -> None:
        self.found: Reading = model

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        at = [text.find("Aspirin") for text in texts]
        return [replace(self.found, names=(ScoredSpan(b, b + 7, 0.9),)) for b in at]


def test_mean_weights_averages_each_weight() -> None:
    states = [{"a": torch.tensor([1.0, 2.0])}, {"a": torch.tensor([3.0, 6.0])}]
    assert mean_weights(states)["a"].tolist() == [2.0, 4.0]


def test_reader_measures_by_question_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "Reader", Says)
    names: dict[str, Any] = {"type": "factoid", "exact_answer": [["aspirin"]]}
    rows = {
        "yes": gold_row(),
        "no": gold_row(exact_answer="no"),
        "factoid": gold_row(**names),
        "wrong": gold_row(**(names | {"exact_answer": [["patients"]]})),
        "list": gold_row(**(names | {"type": "list"})),
        "summary": gold_row(type="summary"),
    }
    yes: Any = Reading(0.9, 0.8, 0.1, 0.1)
    for chosen, wanted in [
        (["yes"], {"yes/no macro F1": 0.5}),
        (["yes", "no"], {"yes/no macro F1": 1 / 3}),
        (["factoid", "wrong"], {"factoid first right": 0.5, "names F1": 0.5}),
        (["list"], {"names F1": 1.0}),
        (["summary"], {}),
    ]:
        questions = read_answered(
            [write_gold(tmp_path / "q.json", *(rows[name] for name in chosen))]
        )
        assert measure_reader(yes, None, questions, 48) == pytest.approx(wanted), chosen
