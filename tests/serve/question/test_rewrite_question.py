import asyncio
from typing import Any

import pytest

from cluster.errors import LLMError
from cluster.text.analysis import ANALYSER
from serve.question.rewrite_question import decompose, entity_query, read_queries, write_paragraphs
from tests.serve.scripted_model import LOST, Reply, Script, watched

QUESTION = "Does metformin activate AMPK?"
TOKENS = 96


def rewrite(kind: Any, said: Script) -> tuple[list[str], list[str]]:
    """Return (texts, losses)."""
    model, watch = watched(said)
    if kind == "sub-questions":
        return asyncio.run(decompose(QUESTION, model, TOKENS)), watch.degraded
    return asyncio.run(write_paragraphs(kind, QUESTION, [model], TOKENS)), watch.degraded


@pytest.mark.parametrize(
    ("kind", "reply", "texts", "temperature"),
    [
        ("hyde", "AIM: Metformin\n activates AMPK.", ["AIM: Metformin activates AMPK."], 0.1),
        ("sub-questions", "Query 1: metformin\nQuery 2: AMPK", ["metformin", "AMPK"], 0.1),
        ("pseudo-document", "One.", ["One."], 0.0),
        ("continue", "It does.", ["It does."], 0.0),
    ],
)
def test_models_texts_are_returned(
    kind: str, reply: str, texts: list[str], temperature: float
) -> None:
    said = Script(reply)
    assert rewrite(kind, said) == (texts, [])
    (call,) = said.calls
    assert QUESTION in said.users()[0]
    assert (call["max_tokens"], call["temperature"]) == (TOKENS, temperature)
    # A continuation has no other prompt than the question.
    bare = [{"role": "user", "content": QUESTION}]
    assert (call["messages"] == bare) is (kind == "continue")


@pytest.mark.parametrize("reply", [LOST, "", "...\n"])
@pytest.mark.parametrize("kind", ["hyde", "continue", "sub-questions"])
def test_lost_or_empty_reply_is_noted(kind: str, reply: Reply) -> None:
    assert rewrite(kind, Script(reply)) == ([], ["rewrite: failed, question not rewritten"])


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
    said = Script("One.", "Two.")
    draw = write_paragraphs("pseudo-document", QUESTION, [watched(said)[0]] * 2, TOKENS)
    assert sorted(asyncio.run(draw)) == ["One.", "Two."]
    assert all(call["temperature"] > 0 for call in said.calls)
    assert sorted(call["seed"] for call in said.calls) == [0, 1]


def test_two_models_write_one_pseudo_document_each() -> None:
    model, watch = watched(Script("One.", "One."))
    models = [model, watched(Script("Two.", LOST), watch)[0]]
    for documents in (["One.", "Two."], ["One."]):
        draw = write_paragraphs("pseudo-document", QUESTION, models, TOKENS)
        assert asyncio.run(draw) == documents
    assert watch.degraded == ["rewrite: failed, fewer than 2 pseudo-documents"]


def test_entity_query_weights_question_and_names() -> None:
    names = [["AMPK", "ampk", "metformin"], ["AMPK"]]
    weights = entity_query("metformin action", names, 2, ANALYSER)
    assert weights == {"metformin": 3, "action": 2, "ampk": 2}
