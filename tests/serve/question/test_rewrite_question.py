import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from cluster.errors import LLMError
from cluster.text.analysis import ANALYSER
from serve.contracts.watched_model import WatchedModel
from serve.question.rewrite_question import (
    decompose,
    entity_query,
    read_queries,
    write_paragraphs,
)
from tests.serve.chat_endpoint import chat_endpoint, watched

QUESTION = "Does metformin activate AMPK?"
TOKENS = 512
LOST = ["rewrite: failed, question not rewritten"]


def draw(models: Sequence[WatchedModel]) -> list[str]:
    return asyncio.run(write_paragraphs("pseudo-document", QUESTION, models, TOKENS))


def rewrite(kind: Any, model: WatchedModel) -> list[str]:
    if kind == "sub-questions":
        return asyncio.run(decompose(QUESTION, model, TOKENS))
    return asyncio.run(write_paragraphs(kind, QUESTION, [model], TOKENS))


@pytest.mark.parametrize(
    ("kind", "reply", "texts"),
    [
        (
            "hyde",
            "BACKGROUND: Metformin\n activates AMPK.",
            ["BACKGROUND: Metformin activates AMPK."],
        ),
        ("continue", "It does.", ["It does."]),
        ("sub-questions", "Query 1: metformin\nQuery 2: AMPK", ["metformin", "AMPK"]),
    ],
)
def test_models_texts_are_returned(kind: str, reply: str, texts: list[str]) -> None:
    with chat_endpoint(reply) as endpoint:
        model, watch = watched(endpoint)
        assert rewrite(kind, model) == texts
    assert QUESTION in endpoint.users()[0]
    assert watch.degraded == []
    # A continuation has no other prompt than the question.
    bare = [{"role": "user", "content": QUESTION}]
    assert (endpoint.asked[0]["messages"] == bare) is (kind == "continue")


@pytest.mark.parametrize("reply", [500, "", "...\n"])
@pytest.mark.parametrize("kind", ["hyde", "continue", "sub-questions"])
def test_lost_or_empty_reply_is_noted(kind: str, reply: str | int) -> None:
    with chat_endpoint(reply) as endpoint:
        model, watch = watched(endpoint)
        assert rewrite(kind, model) == []
    assert watch.degraded == LOST


def test_rewriting_uses_temperature_of_the_paper_and_tokens_of_the_preset() -> None:
    with chat_endpoint("An abstract.", "Query 1: AMPK", "One.", "It does.") as endpoint:
        model = watched(endpoint)[0]
        asyncio.run(write_paragraphs("hyde", QUESTION, [model], 512))
        asyncio.run(decompose(QUESTION, model, 64))
        asyncio.run(write_paragraphs("pseudo-document", QUESTION, [model], 96))
        asyncio.run(write_paragraphs("continue", QUESTION, [model], 128))
    assert [body["max_tokens"] for body in endpoint.asked] == [512, 64, 96, 128]
    assert [body["temperature"] for body in endpoint.asked] == [0.1, 0.1, 0.0, 0.0]


def test_read_queries_accepts_any_numbering() -> None:
    queries = {
        "1. one\n2) two\n3 - three": ["one", "two", "three"],
        '**Query 1:** "one"\n\n- Query 2:   two  words': ["one", "two words"],
        "Here they are:\nQuery 1: a\nQuery 2: a\nQuery 3: b": ["a", "b"],
        "Query 1: a\nQuery 2: b\nQuery 3: c\nQuery 4: d": ["a", "b", "c"],
    }
    assert {text: read_queries(text) for text in queries} == queries
    with pytest.raises(LLMError, match="no numbered query"):
        read_queries("Query 1:\nQuery 2:")


def test_pseudo_documents_of_one_model_are_sampled() -> None:
    with chat_endpoint("One.", "Two.") as endpoint:
        documents = draw([watched(endpoint)[0]] * 2)
    assert sorted(documents) == ["One.", "Two."]
    assert all(body["temperature"] > 0 for body in endpoint.asked)
    assert sorted(body["seed"] for body in endpoint.asked) == [0, 1]


def test_two_models_write_one_pseudo_document_each() -> None:
    with chat_endpoint("One.") as first, chat_endpoint("Two.", 500) as second:
        model, watch = watched(first)
        models = [model, watched(second, watch=watch)[0]]
        assert draw(models) == ["One.", "Two."]
        assert draw(models) == ["One."]
    assert watch.degraded == ["rewrite: failed, fewer than 2 pseudo-documents"]


def test_entity_query_weights_question_and_names() -> None:
    weights = entity_query(
        "metformin action", [["AMPK", "ampk", "metformin"], ["AMPK"]], 2, ANALYSER
    )
    assert weights == {"metformin": 3, "action": 2, "ampk": 2}
