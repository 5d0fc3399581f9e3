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


def search(endpoint: ChatEndpoint) -> tuple[list[str], list[str]]:
    """Run up to 3 rounds in which each search finds one passage; return (queries, losses)."""
    model, watch = watched(endpoint)
    searched: list[str] = []

    async def find(query: str) -> list[Evidence]:
        searched.append(query)
        return evidence(f"Found for {query}")

    found = asyncio.run(search_until_sure(QUESTION, find, list, model, 3, TOKENS))
    assert [e.passage.text for e in found] == [f"Found for {query}" for query in searched]
    return searched, watch.degraded


def test_model_rates_the_answer_that_it_drafted() -> None:
    with chat_endpoint("Yes, it does.", critique("LOW", "metformin dose")) as endpoint:
        model, _ = watched(endpoint)
        judgement = asyncio.run(judge_evidence(QUESTION, evidence("Metformin."), model, TOKENS))
    assert judgement == Judgement("LOW", "the dose", "metformin dose")
    assert "Candidate answer: Yes, it does." in endpoint.users()[1]
    assert all("[1] Metformin." in user for user in endpoint.users())


UNSURE = ("Yes.", critique("LOW", "one"))


@pytest.mark.parametrize(
    ("replies", "searched"),
    [
        (("Yes.", critique("HIGH", "more")), [QUESTION]),
        (("Yes.", critique("MEDIUM", "AMPK"), "Yes.", critique("HIGH")), [QUESTION, "AMPK"]),
        ((*UNSURE, "Yes.", critique("LOW", "two"), "none"), [QUESTION, "one", "two"]),
        ((*UNSURE, "Yes.", critique("LOW", "ONE")), [QUESTION, "one"]),
        (("Yes.", critique("LOW")), [QUESTION]),
    ],
    ids=["sure at once", "sure later", "three rounds at most", "nothing new", "no query"],
)
def test_follow_up_queries_are_searched_until_confidence_is_high(
    replies: tuple[str, ...], searched: list[str]
) -> None:
    with chat_endpoint(*replies) as endpoint:
        assert search(endpoint) == (searched, [])
        # The evidence of the last round is not rated.
        assert len(endpoint.asked) == 2 * min(len(searched), 2)
        assert all(f"Found for {query}" in endpoint.users()[-1] for query in searched[:2])


@pytest.mark.parametrize("replies", [(500,), ("Yes.", 500), ("Yes.", "I am sure.")])
def test_self_check_keeps_the_hits_if_the_model_is_lost(replies: tuple[str | int, ...]) -> None:
    with chat_endpoint(*replies) as endpoint:
        assert search(endpoint) == ([QUESTION], ["self-check: failed, evidence not checked"])


def test_read_judgement_rejects_other_replies() -> None:
    for text in ("", "[]", "{}", '{"confidence": "SURE"}', '{"confidence": 3}'):
        with pytest.raises(LLMError, match="confidence"):
            read_judgement(text)
    assert read_judgement('{"confidence": "high"}') == Judgement("HIGH", "", "")
