from typing import Any

import pytest

from cluster.answers import Question, QuestionType
from cluster.errors import InputError
from cluster.records import Entity
from cluster.settings.presets import as_system, load_system
from cluster.settings.search_settings import ExpansionSettings
from cluster.text.analysis import ANALYSER
from serve.search.make_queries import MAX_QUERY_TERMS, query_weights
from tests.serve.service import CORPUS
from tests.serve.small_graph import make_answerer, parts_of, reply_of


def test_query_weights_limits_weights_and_number_of_synonyms() -> None:
    synonyms = ["myocardial infarction", "attack"]
    weights = query_weights("heart attack attack", synonyms, 0.2, ANALYSER)
    assert (weights["attack"], weights["myocardi"]) == (2, 0.2)
    many = query_weights(" ".join(f"w{i}" for i in range(2000)), [], 0, ANALYSER)
    assert len(many) == MAX_QUERY_TERMS


class Synonyms:
    """Recogniser with metformin as a synonym of Glucophage."""

    def entities(self, text: str) -> list[Entity]:
        at = text.find("Glucophage")
        found = Entity("Glucophage", at, at + 10, "mesh:1", "mesh", ("metformin",))
        return [found] if at >= 0 else []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expansion", "kind", "found"),
    [
        (ExpansionSettings(), "yesno", False),
        (ExpansionSettings(weight=0.5), "yesno", True),
        (ExpansionSettings(by_type={"list": 0.5}), "yesno", False),
        (ExpansionSettings(by_type={"yesno": 0.5}), "yesno", True),
        (ExpansionSettings(weight=0.5, by_type={"yesno": 0.0}), "yesno", False),
    ],
)
def test_synonyms_are_searched_if_the_type_allows(
    expansion: ExpansionSettings, kind: QuestionType, found: bool
) -> None:
    answerer = make_answerer(None, CORPUS)
    parts_of(answerer)["expander"].recogniser = Synonyms()
    system = load_system("bm25").model_copy(update={"expand": True, "expansion": expansion})
    question = Question("q", "What is Glucophage good for?", kind)
    hits = reply_of(answerer.search, question, system).citations
    assert (1 in [hit.pmid for hit in hits]) == found


@pytest.mark.slow
def test_name_variants_are_searched_by_vectors() -> None:
    answerer = make_answerer(None, CORPUS)
    parts = parts_of(answerer)
    parts["expander"].recogniser = Synonyms()
    asked: list[str] = []
    encode = parts["encoder"].encode

    def listened(text: str) -> Any:
        asked.append(text)
        return encode(text)

    parts["encoder"].encode = listened
    expansion = ExpansionSettings(variants=2)
    system = load_system("dense").model_copy(update={"expand": True, "expansion": expansion})
    question = Question("q", "What is Glucophage good for?", "summary")
    found = reply_of(answerer.search, question, system)
    assert asked == ["What is Glucophage good for?", "What is metformin good for?"]
    assert found.citations[0].pmid == 1
    assert found.degraded == ()


def test_expansion_without_entities_is_rejected() -> None:
    with pytest.raises(InputError, match="expansion needs the question's entities"):
        as_system("mine", {"over": "bm25", "expand": False, "expansion": {"weight": 0.1}}, "mine")
