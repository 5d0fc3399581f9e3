import asyncio
import json

import pytest

from cluster.answers import Evidence
from cluster.errors import LLMError
from serve.search.check_confidence import (
    Judgement,
    judge_evidence,
    read_judgement,
    search_until_sure,
)
from tests.serve.answering import evidence
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint, watched

QUESTION = "Does metformin activate AMPK?"
TOKENS = 512


def critique(confidence: str, query: str = "") -> str:
    said = {"confidence": confidence, "missing": "the dose", "followup_query": query}
    return json.dumps(said)


def search(endpoint: ChatEndpoint, rounds: int = 3) -> tuple[list[str], list[str]]:
    """(queries searched, losses), where each search finds one passage."""
    model, watch = watched(endpoint)
    searched: list[str] = []

    async def find(query: str) -> list[Evidence]:
        searched.append(query)
        return evidence(f"Found for {query}")

    found = asyncio.run(search_until_sure(QUESTION, find, list, model, rounds, TOKENS))
    assert [e.passage.text for e in found] == [f"Found for {query}" for query in searched]
    return searched, watch.degraded


def test_the_model_judges_the_answer_that_it_drafted() -> None:
    with chat_endpoint("Yes, it does.", critique("LOW", "metformin dose")) as endpoint:
        model, _ = watched(endpoint)
        judgement = asyncio.run(judge_evidence(QUESTION, evidence("Metformin."), model, TOKENS))
    assert judgement == Judgement("LOW", "the dose", "metformin dose")
    assert "Candidate answer: Yes, it does." in endpoint.users()[1]
    assert all("[1] Metformin." in user for user in endpoint.users())


def test_a_sure_answer_ends_the_search() -> None:
    with chat_endpoint("Yes.", critique("HIGH", "more")) as endpoint:
        assert search(endpoint) == ([QUESTION], [])


def test_below_high_the_follow_up_query_is_searched() -> None:
    with chat_endpoint(
        "Yes.", critique("MEDIUM", "AMPK"), "Yes.", critique("HIGH", "x")
    ) as endpoint:
        assert search(endpoint) == ([QUESTION, "AMPK"], [])
    assert "Found for AMPK" in endpoint.users()[2]


def test_there_are_at_most_three_rounds() -> None:
    said = ("Yes.", critique("LOW", "one"), "Yes.", critique("LOW", "two"), "Yes.", "none")
    with chat_endpoint(*said) as endpoint:
        assert search(endpoint) == ([QUESTION, "one", "two"], [])
    assert len(endpoint.asked) == 4


@pytest.mark.parametrize("query", ["", "DOES metformin activate AMPK?"])
def test_nothing_new_to_ask_ends_the_search(query: str) -> None:
    with chat_endpoint("Yes.", critique("LOW", query)) as endpoint:
        assert search(endpoint) == ([QUESTION], [])


@pytest.mark.parametrize("replies", [(500,), ("Yes.", 500), ("Yes.", "I am sure.")])
def test_a_lost_model_leaves_what_was_found_and_says_so(replies: tuple[str | int, ...]) -> None:
    with chat_endpoint(*replies) as endpoint:
        assert search(endpoint) == ([QUESTION], ["self-check: failed, evidence not checked"])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"confidence": "SURE"}', '{"confidence": 3}'])
def test_a_judgement_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(LLMError, match="confidence"):
        read_judgement(text)


def test_a_judgement_may_be_in_lower_case_and_without_a_query() -> None:
    assert read_judgement('{"confidence": "high"}') == Judgement("HIGH", "", "")
