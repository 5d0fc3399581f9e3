from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from mcp import Client

from serve.client.open_client import HttpClient
from tests.serve.api import served_api
from tests.serve.http.page.library import library_service
from tests.serve.saved.kept import saved_at

QUESTION = {"question": "Does metformin activate AMPK?", "filters": {"year_from": 2015}}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("library")
    with served_api(library_service(folder), saved=saved_at(folder / "saved")) as url:
        yield url


def post(url: str, path: str, body: Any = None) -> Any:
    reply = httpx.post(f"{url}{path}", json=body, timeout=60, trust_env=False)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_strategy_has_the_hits_of_its_query(url: str) -> None:
    reply = post(url, "/v1/strategy", {**QUESTION, "max_hits": 10})
    made = reply["strategy"]
    assert made["limits"] == ["2015:3000[dp]"]
    assert made["pubmed"].endswith(" AND 2015:3000[dp]")
    assert reply["texts"]["pubmed"] == f"{made['pubmed']}\n"
    query = {"query": made["pubmed"], "limit": 100}
    found = post(url, "/v1/search/boolean", query)
    assert found["total"] == made["hits"] == 9
    pmids = {citation["pmid"] for citation in found["citations"]}
    assert made["found"] == len(pmids & set(made["reference"]))
    assert made["recall"] == made["found"] / len(made["reference"])
    # The same index gives the same strategy.
    assert post(url, "/v1/strategy", {**QUESTION, "max_hits": 10}) == reply


def test_stored_answer_and_tool_give_the_same_strategy(url: str) -> None:
    made = post(url, "/v1/strategy", QUESTION)
    stored = post(url, "/v1/answer", {**QUESTION, "store": True})["answer_id"]
    assert post(url, f"/v1/answers/{stored}/strategy") == made
    with HttpClient(url, timeout_s=60) as client:
        assert client.strategy_of(stored, 500) == made

    async def called() -> Any:
        async with Client(f"{url}/mcp") as client:
            return await client.call_tool("search_strategy", QUESTION)

    reply = asyncio.run(called())
    assert reply.structured_content["pubmed"] == made["strategy"]["pubmed"]
    assert reply.content[0].text == made["texts"]["text"]


def test_words_without_citations_and_years_without_a_filter_are_noted(url: str) -> None:
    asked = {"question": "Does metformin help zebrafish since 2015?"}
    unlimited = post(url, "/v1/strategy", asked)["strategy"]
    limited = post(url, "/v1/strategy", {**QUESTION, **asked})["strategy"]
    words = "words that none of the best citations of the semantic search has are left out: "
    for made in (unlimited, limited):
        assert f"{words}help, zebrafish" in made["notes"]
    assert any(
        note.startswith("2015 in the question is not searched") for note in unlimited["notes"]
    )
    assert not any("2015" in note for note in limited["notes"])


def test_question_without_results_is_refused(url: str) -> None:
    body = {"question": "Does metformin work?", "filters": {"year_from": 2999}}
    reply = httpx.post(f"{url}/v1/strategy", json=body, timeout=60, trust_env=False)
    assert reply.status_code == 422
    assert "nothing was found" in reply.json()["detail"]
