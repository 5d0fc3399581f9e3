"""The reader's training: what it measures, and that it learns what it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from cluster.models.adapters import model_folder
from cluster.models.reader import Reader
from cluster.models.readings import NO, YES, Reading, ScoredSpan
from cluster.settings.settings import load_settings
from pipelines.train.examples.mark_names import Marked
from pipelines.train.examples.reader_examples import AnsweredQuestion, Part, ReaderExample
from pipelines.train.recipe import ReaderRecipe, read_recipe
from pipelines.train.tasks.reader_task import UNKNOWN, ReaderTask, measure_reader, part_logits
from tests.pipelines.train.examples.test_reader_examples import write
from tests.pipelines.train.test_train_command import run
from tests.pipelines.train.tiny_data import write_corpus
from tests.tiny_models import make_tiny_encoder

pytestmark = [pytest.mark.durability, pytest.mark.ray, pytest.mark.nightly]

ASKS = "does aspirin treat fever ?"
EXAMPLES = [
    ReaderExample(ASKS, "aspirin treats fever .", (Part(0, 22, True, YES, 1.0),), (Marked(0, 7),)),
    ReaderExample(ASKS, "aspirin does not treat fever .", (Part(0, 30, True, NO, 1.0),)),
    ReaderExample(ASKS, "the heart of patients .", (Part(0, 23, False, None, 0.0),)),
]


def recipe(**changes: Any) -> ReaderRecipe:
    small = {"steps": 80, "batch": 3, "max_tokens": 32, "rank": 0, "learning_rate": 0.005}
    return read_recipe(ReaderRecipe, "reader").model_copy(update=small | changes)


def test_reader_learns_each_of_its_answers(tmp_path: Path) -> None:
    task = ReaderTask(make_tiny_encoder(tmp_path), EXAMPLES, [], recipe(), "cpu")
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=0.005)
    task.model.train()
    for _ in range(80):
        loss = task.loss([0, 1, 2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    reader = Reader(task.model, task.tokenizer, max_tokens=32, batch_size=4)
    yes, no, other = reader.read(ASKS, [e.passage for e in EXAMPLES])
    assert yes.yes > 0.8
    assert no.no > 0.8
    assert yes.relevance > 0.8 > 0.2 > other.relevance
    assert [(n.begin, n.end) for n in yes.names] == [(0, 7)]
    assert yes.sentences[0].score > 0.8 > 0.2 > other.sentences[0].score


def test_a_sentence_is_judged_apart_from_its_neighbour(tmp_path: Path) -> None:
    both = (
        "The heart of patients hurts because it does so today. "
        "Aspirin treats fever for the patients of the heart."
    )
    begin = both.index("Aspirin")
    parts = (Part(0, begin - 1, False, None, 0.0), Part(begin, len(both), True, YES, 1.0))
    turned = f"{both[begin:]} {both[: begin - 1]}"
    end = len(both) - begin
    other = (Part(0, end, True, YES, 1.0), Part(end + 1, len(turned), False, None, 0.0))
    shown = [ReaderExample(ASKS, both, parts), ReaderExample(ASKS, turned, other)]
    task = ReaderTask(make_tiny_encoder(tmp_path), shown, [], recipe(max_tokens=64), "cpu")
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=0.005)
    for _ in range(120):
        loss = task.loss([0, 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    reader = Reader(task.model, task.tokenizer, max_tokens=64, batch_size=4)
    for found, place in zip(reader.read(ASKS, [both, turned]), (1, 0), strict=True):
        assert found.relevance > 0.8
        assert found.sentences[place].score > 0.8 > 0.2 > found.sentences[1 - place].score


def test_a_batch_without_names_stances_or_parts_has_a_loss(tmp_path: Path) -> None:
    bare = ReaderExample(ASKS, "the heart .", ())
    loss = ReaderTask(make_tiny_encoder(tmp_path), [bare], [], recipe(), "cpu").loss([0])
    assert torch.isfinite(loss)


def test_a_part_has_the_first_token_and_the_mean_of_its_own() -> None:
    logits = torch.arange(16.0).reshape(1, 4, 4)
    part = torch.tensor([[UNKNOWN, 0, 0, 2]])
    numbers, found = part_logits(logits, part, [0, 0, 0])
    assert numbers.tolist() == [0, 2]
    assert found.tolist() == [[0 + 6, 1 + 7, 2 + 8, 3 + 9], [0 + 12, 1 + 13, 2 + 14, 3 + 15]]


class Scripted:
    """Says of every passage that it is relevant, says yes, and names its first word."""

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        return [
            Reading(1.0, 0.9, 0.1, 0.0, (ScoredSpan(0, text.index(" "), 0.9),)) for text in passages
        ]


def test_measures_are_over_the_questions_held_out() -> None:
    def question(kind: str, snippet: str, **gold: Any) -> AnsweredQuestion:
        fields = {"names": (), "stance": None} | gold
        return AnsweredQuestion("q?", kind, frozenset(), (snippet,), ideal=("x",), **fields)

    found = measure_reader(
        cast(Reader, Scripted()),
        [
            question("yesno", "It is so.", stance=YES),
            question("yesno", "It is not.", stance=NO),
            question("factoid", "BRCA1 causes it.", names=(("brca1",),)),
            question("factoid", "We found TP53.", names=(("TP53",),)),
            question("summary", "It is so."),
        ],
    )
    assert found["yes/no macro F1"] == pytest.approx((2 / 3 + 0) / 2)
    assert found["factoid first right"] == 0.5
    assert found["names F1"] == 0.5


@pytest.mark.parametrize("rank", [4, 0])
def test_a_trained_reader_is_loaded_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "store"))
    base = make_tiny_encoder(tmp_path)
    corpus = write_corpus(tmp_path / "c.xml", {1: "Aspirin treats fever .", 2: "The heart ."})
    questions = write(tmp_path / "q.json")
    out = tmp_path / "reader"
    quick = ("steps=3", "batch=2", f"rank={rank}", "propositions=6", "attributes=6", "hardest=2")
    found = run(base, "reader", questions, "--corpus", corpus, "--out", out, "--held-out",
                questions, quick=quick)  # fmt: skip
    assert "yes/no macro F1" in found["measured"]
    named = "adapter" if rank else "model"
    settings = load_settings(overrides=["reader.model=", f"reader.{named}=file:{out}"]).reader
    reader = Reader.load(model_folder(settings), max_tokens=32, batch_size=2)
    assert len(reader.read(ASKS, ["aspirin treats fever ."])) == 1
    assert "citeray train reader" in (out / "README.md").read_text(encoding="utf-8")
