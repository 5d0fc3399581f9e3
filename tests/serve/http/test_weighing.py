"""Design, notices, counts and order over HTTP, from the Python client, and for models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from mcp import Client

from cluster.records import Link
from cluster.settings.settings import load_settings
from serve.client.python_client import CiteRay
from serve.http.api import create_api
from tests.serve.http_server import serving
from tests.serve.service import SmallService
from tests.small_index import citation

QUESTION = "Does metformin lower glucose?"
SAID = "Metformin lowers glucose."
CORPUS = [
    citation(1, SAID, "Old", year=1999, publication_types=("Review",)),
    citation(2, SAID, "New", year=2024, links=(Link("ErratumIn", 7, "J. 2025"),)),
    citation(3, SAID, "Trial", year=2010, publication_types=("Randomized Controlled Trial",)),
    citation(4, SAID, "False", year=2011, links=(Link("RetractionIn", 8, "J. 2025"),)),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    service = SmallService(citations=CORPUS)
    with serving(create_api(service, load_settings().serve)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("path", ["/v1/search", "/v1/answer"])
def test_citations_are_listed_by_date_or_by_design(url: str, path: str) -> None:
    def pmids(sort: str) -> list[int]:
        asked = {"question": QUESTION, "sort": sort}
        reply = httpx.post(f"{url}{path}", json=asked, timeout=60).json()
        assert reply["sort"] == sort
        return [citation["pmid"] for citation in reply["citations"]]

    assert pmids("date") == [2, 4, 3, 1]
    assert pmids("design")[:2] == [3, 1]
    assert sorted(pmids("relevance")) == [1, 2, 3, 4]


def test_an_order_that_there_is_not_is_refused(url: str) -> None:
    reply = httpx.post(f"{url}/v1/search", json={"question": QUESTION, "sort": "size"})
    assert reply.status_code == 422
    assert "sort: Input should be 'relevance', 'date' or 'design'" in reply.json()["detail"]


def test_what_a_citation_is_worth_comes_with_a_search(url: str) -> None:
    with CiteRay(url) as citeray:
        found = citeray.search(QUESTION, sort="date")
        whole = citeray.citation(4)
    by_pmid = {c.pmid: c for c in found.citations}
    assert (by_pmid[3].design, by_pmid[3].design_from) == ("randomised_trial", "publication_types")
    assert by_pmid[2].erratum
    assert by_pmid[2].links == (Link("ErratumIn", 7, "J. 2025"),)
    assert by_pmid[4].retracted
    assert by_pmid[4].notice == "Retracted: see PMID 8."
    assert found.evidence_by.year == {"1999": 1, "2010": 1, "2011": 1, "2024": 1}
    assert found.evidence_by.design == {"randomised_trial": 1, "review": 1, "other": 2}
    assert (whole.notice, whole.title) == ("Retracted: see PMID 8.", "False")


def test_models_read_designs_and_notices(url: str) -> None:
    async def call() -> list[str]:
        async with Client(f"{url}/mcp") as tools:
            asked = {"question": QUESTION, "sort": "design"}
            found = await tools.call_tool("search_pubmed", asked)
            record = await tools.call_tool("get_citation", {"pmid": 4})
            return [found.content[0].text, record.content[0].text]

    found, record = asyncio.run(call())
    assert "1. PMID 3 (2010, randomised trial): Trial" in found
    assert "   Corrected or updated since: see PMID 7." in found
    assert "Retracted: see PMID 8." in record
