from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from cluster.records import Entity
from pipelines.train.examples.tagged_texts import TaggedText
from pipelines.train.recipe import Recipe, read_recipe
from pipelines.train.tasks.tag_task import TagTask, measure_tagger
from tests.tiny_models import make_tiny_encoder

pytestmark = [pytest.mark.model, pytest.mark.nightly]

BOTH = frozenset({"Chemical", "Disease"})
TEXT = TaggedText("aspirin treats fever .", ((0, 7, "Chemical"), (15, 20, "Disease")), BOTH)


class Guesses:
    """Tagger stub that returns the given spans."""

    def __init__(self, *spans: tuple[int, int, str]) -> None:
        self._spans = spans

    def tag(self, texts: Any) -> list[list[Entity]]:
        return [[Entity(t[b:e], b, e, "", kind) for b, e, kind in self._spans] for t in texts]


def recipe(**changes: Any) -> Recipe:
    small = {"steps": 60, "batch": 2, "max_tokens": 32, "rank": 4, "learning_rate": 0.02}
    return read_recipe(Recipe, "ner").model_copy(update=small | changes)


def test_only_exact_spans_of_the_right_type_are_correct() -> None:
    found = measure_tagger(Guesses((0, 7, "Chemical"), (15, 20, "Chemical")), [TEXT])
    assert found["precision"] == found["recall"] == found["F1"] == 0.5
    assert found["Chemical precision"] == 0.5
    assert found["Chemical recall"] == 1.0
    assert found["Disease F1"] == 0.0
    assert measure_tagger(Guesses((0, 14, "Chemical")), [TEXT])["F1"] == 0.0


def test_predictions_of_unmarked_types_are_ignored() -> None:
    unmarked = TaggedText(TEXT.text, ((15, 20, "Disease"),), frozenset({"Disease"}))
    found = measure_tagger(Guesses((0, 7, "Chemical"), (15, 20, "Disease")), [unmarked])
    assert found["F1"] == 1.0


@pytest.mark.parametrize("rank", [4, 0])
def test_rank_selects_adapter_or_full_training(tmp_path: Path, rank: int) -> None:
    task = TagTask(make_tiny_encoder(tmp_path), [TEXT], [], recipe(rank=rank), "cpu")
    trained = {n for n, p in task.model.named_parameters() if p.requires_grad}
    assert any("classifier" in name for name in trained)
    assert any("word_embeddings" in name for name in trained) == (rank == 0)
    assert any("lora" in name for name in trained) == (rank > 0)
    with pytest.raises(InputError, match="nothing to train a recogniser on"):
        TagTask(tmp_path, [TaggedText("x", (), frozenset())], [], recipe(), "cpu")
