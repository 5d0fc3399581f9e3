from typing import Any

import pytest

from cluster.errors import InputError
from pipelines.train.recipe import ClaimRecipe, ReaderRecipe, Recipe, RetrievalRecipe, read_recipe

pytestmark = [pytest.mark.durability, pytest.mark.nightly]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Recipe, "ner"),
        (ClaimRecipe, "nli"),
        (RetrievalRecipe, "encoder"),
        (RetrievalRecipe, "reranker"),
        (ReaderRecipe, "reader"),
    ],
)
def test_every_shipped_recipe_is_sound(kind: type[Any], name: str) -> None:
    assert isinstance(read_recipe(kind, name), kind)


def test_change_overrides_the_shipped_value() -> None:
    assert read_recipe(Recipe, "ner", ["steps=7", "learning_rate=2e-4"]).steps == 7


@pytest.mark.parametrize("change", ["step=7", "steps"])
def test_change_that_is_no_line_of_the_recipe_is_refused(change: str) -> None:
    with pytest.raises(InputError, match=f"--with {change}: .*KEY=VALUE.*learning_rate"):
        read_recipe(Recipe, "ner", [change])


def test_change_to_a_bad_value_is_refused_with_its_name() -> None:
    with pytest.raises(InputError, match=r"recipe ner: steps: .*greater than 0 \(got 0\)"):
        read_recipe(Recipe, "ner", ["steps=0"])


def test_share_of_an_adapter_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"recipe ner: mixing: .*set it to 1 \(got 0.5\)"):
        read_recipe(Recipe, "ner", ["rank=0", "mixing=0.5"])
