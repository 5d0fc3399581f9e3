from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.serve.http.workbench.test_reference_tools import calls
from tests.serve.problem import assert_refused
from tests.serve.service import SmallService
from tests.small_index import citation

QUESTION = "Does metformin lower glucose?"
CORPUS = [
    citation(1, "Metformin lowers glucose.", "Old", year=1999),
    citation(2, "Metformin lowers glucose.", "New", year=2024, month=5),
]


@pytest.fixture(scope="module")
def service() -> SmallService:
    return SmallService(citations=CORPUS)


def post(url: str, path: str, **filters: Any) -> httpx.Response:
    return httpx.post(f"{url}{path}", json={"question": QUESTION, "filters": filters}, timeout=60)


def test_citations_match_the_filters(url: str) -> None:
    for path in ("/v1/search", "/v1/answer"):
        found = post(url, path, year_from=2000).json()
        assert [c["pmid"] for c in found["citations"]] == [2]
        assert (found["filters"]["year_from"], found["filtered_out"]) == (2000, "")
        assert post(url, path).json()["filters"] is None
        assert [c["pmid"] for c in post(url, path, until="2024-05-30").json()["citations"]] == [1]


@pytest.mark.slow
def test_invalid_filters_are_422(url: str) -> None:
    for filters, said in [
        ({"year": 2020}, "filters.year: is unknown"),
        ({"year_from": 2021, "year_to": 2020}, "filters.year_from: 2021 is after"),
        ({"until": "soon"}, "filters.until: 'soon' is not a day"),
        ({"mesh": ["Humans"]}, "filters.mesh: 'humans' is not the UI"),
        ({"mesh": ["D006801"] * 1001}, "filters.mesh: must have at most 1000 items"),
        ({"design": ["placebo"]}, "filters.design.0: must be 'guideline', 'meta_analysis'"),
    ]:
        assert_refused(post(url, "/v1/search", **filters), said)


@pytest.mark.slow
def test_unknown_values_and_filters_without_a_match_are_reported(url: str) -> None:
    tools = {"/v1/search": "search_pubmed", "/v1/answer": "answer_question"}
    unknown = "filters.languages: no article in this index has 'xyz'"
    empty = "No article in this index passes the filters. Articles without year_from (2030): 2."

    for path in tools:
        assert_refused(post(url, path, languages=["xyz"]), unknown)
        none = post(url, path, year_from=2030).json()
        assert (none["filtered_out"], none.get("ideal", [])) == (empty, [])
    asked = [
        (tool, {"question": QUESTION, "filters": filters})
        for tool in tools.values()
        for filters in ({"languages": ["xyz"]}, {"year_from": 2030})
    ]
    replies = [(reply.is_error, reply.content[0].text) for reply in calls(url, *asked)]
    assert [error for error, _ in replies] == [True, False] * 2
    assert all(said in text for said, (_, text) in zip([unknown, empty] * 2, replies, strict=True))
