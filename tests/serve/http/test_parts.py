from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from cluster.answers import Answer
from serve.client.open_client import as_answer
from tests.serve.api import client_of
from tests.serve.http.test_api import events_of
from tests.serve.service import SmallService, unsure_of

QUESTION = "Does metformin activate AMPK? What inhibits BCR-ABL?"


@pytest.fixture(scope="module")
def reply(http: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = http.post("/v1/answer", json={"question": QUESTION}).json()
    return found


def test_response_has_an_answer_for_each_part(reply: dict[str, Any]) -> None:
    answer = as_answer(reply)
    assert [(part.verdict, part.exact) for part in answer.parts] == [
        ("answered", "yes"),
        ("answered", [["Imatinib"]]),
    ]
    assert all(isinstance(part, Answer) and part.parts == () for part in answer.parts)
    assert (answer.verdict, answer.exact) == ("answered", None)


def test_parts_are_streamed_one_after_another(http: TestClient, reply: dict[str, Any]) -> None:
    named = events_of(http.post("/v1/answer", json={"question": QUESTION, "stream": True}))
    names = [name for name, _ in named if name != "stage"]
    assert names == ["evidence", "part", "part", "answer"]
    parts = [data for name, data in named if name == "part"]
    assert [(data["number"], data["of"]) for data in parts] == [(1, 2), (2, 2)]
    assert [data["answer"] for data in parts] == named[-1][1]["parts"]
    ideal = [part["ideal"] for part in reply["parts"]]
    assert [data["answer"]["ideal"] for data in parts] == ideal


def test_document_states_each_part_and_lists_all_references(
    http: TestClient, reply: dict[str, Any]
) -> None:
    text = http.post("/v1/answers/document?form=text", json=reply).text
    assert "- Does metformin activate AMPK? Yes" in text
    assert "- What inhibits BCR-ABL? Imatinib" in text
    assert "[1]" in text
    assert "[2]" in text


def test_document_of_unanswered_parts_lists_what_comes_closest() -> None:
    http = client_of(SmallService(decide=unsure_of))
    reply = http.post("/v1/answer", json={"question": QUESTION}).json()
    assert reply["verdict"] == "not_enough_evidence"
    text = http.post("/v1/answers/document?form=text", json=reply).text
    assert "CiteRay could not decide this" in text
