from typing import Any

import pytest

from cluster.errors import InputError
from pipelines.train.recipe import ReaderRecipe, Recipe, RetrievalRecipe, read_recipe

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Recipe, "ner"),
        (RetrievalRecipe, "encoder"),
        (RetrievalRecipe, "reranker"),
        (ReaderRecipe, "reader"),
        (ReaderRecipe, "reader-articles"),
    ],
)
def test_shipped_recipe_is_valid(kind: type[Any], name: str) -> None:
    assert isinstance(read_recipe(kind, name), kind)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["step=7"], "--with step=7: .*KEY=VALUE.*learning_rate"),
        (["steps"], "--with steps: .*KEY=VALUE.*learning_rate"),
        (["steps=0"], r"recipe ner: steps: must be more than 0 \(got 0\)"),
        (["rank=0", "mixing=0.5"], r"recipe ner: mixing: .*set it to 1 \(got 0.5\)"),
    ],
)
def test_recipe_override_applies_or_is_refused(changes: list[str], said: str) -> None:
    assert read_recipe(Recipe, "ner", ["steps=7", "learning_rate=2e-4"]).steps == 7
    with pytest.raises(InputError, match=said):
        read_recipe(Recipe, "ner", changes)


def test_adapter_that_is_trained_directly_is_not_averaged() -> None:
    with pytest.raises(InputError, match=r"targets: .*set averaged to 1"):
        read_recipe(ReaderRecipe, "reader", ["averaged=2", "targets=query"])
