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
from tests.serve.scripted_model import LOST, Reply, Script, watched

QUESTION = "Does metformin activate AMPK?"
TOKENS = 512


def critique(confidence: str, query: str = "") -> str:
    said = {"confidence": confidence, "missing": "the dose", "followup_query": query}
    return json.dumps(said)


def search(said: Script) -> tuple[list[str], list[str]]:
    """Run up to 3 rounds in which each search finds one passage; return (queries, losses)."""
    model, watch = watched(said)
    searched: list[str] = []

    async def find(query: str) -> list[Evidence]:
        searched.append(query)
        return evidence(f"Found for {query}")

    found = asyncio.run(search_until_sure(QUESTION, find, list, model, 3, TOKENS))
    assert [e.passage.text for e in found] == [f"Found for {query}" for query in searched]
    return searched, watch.degraded


def test_model_rates_the_answer_that_it_drafted() -> None:
    said = Script("Yes, it does.", critique("LOW", "metformin dose"))
    judge = judge_evidence(QUESTION, evidence("Metformin."), watched(said)[0], TOKENS)
    assert asyncio.run(judge) == Judgement("LOW", "the dose", "metformin dose")
    assert "Candidate answer: Yes, it does." in said.users()[1]
    assert all("[1] Metformin." in user for user in said.users())


UNSURE = ("Yes.", critique("LOW", "one"))


@pytest.mark.parametrize(
    ("replies", "searched"),
    [
        (("Yes.", critique("HIGH", "more")), [QUESTION]),
        (("Yes.", critique("MEDIUM", "AMPK"), "Yes.", critique("HIGH")), [QUESTION, "AMPK"]),
        ((*UNSURE, "Yes.", critique("LOW", "two")), [QUESTION, "one", "two"]),
        ((*UNSURE, "Yes.", critique("LOW", "ONE")), [QUESTION, "one"]),
        (("Yes.", critique("LOW")), [QUESTION]),
    ],
    ids=["sure at once", "sure later", "three rounds at most", "nothing new", "no query"],
)
def test_follow_up_queries_are_searched_until_confidence_is_high(
    replies: tuple[str, ...], searched: list[str]
) -> None:
    said = Script(*replies)
    assert search(said) == (searched, [])
    # The evidence of the last round is not rated.
    assert len(said.calls) == 2 * min(len(searched), 2)
    assert all(f"Found for {query}" in said.users()[-1] for query in searched[:2])


@pytest.mark.parametrize("replies", [(LOST,), ("Yes.", LOST), ("Yes.", "I am sure.")])
def test_self_check_keeps_the_hits_if_the_model_is_lost(replies: tuple[Reply, ...]) -> None:
    assert search(Script(*replies)) == ([QUESTION], ["self-check: failed, evidence not checked"])


def test_read_judgement_rejects_other_replies() -> None:
    for text in ("", "[]", "{}", '{"confidence": "SURE"}', '{"confidence": 3}'):
        with pytest.raises(LLMError, match="confidence"):
            read_judgement(text)
    assert read_judgement('{"confidence": "high"}') == Judgement("HIGH", "", "")
