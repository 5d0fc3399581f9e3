import asyncio
from dataclasses import replace
from typing import Any

import pytest
from mcp import Client

from cluster.answers import Evidence, RankedCitation, Sentence
from cluster.errors import InputError
from cluster.records import Citation, Passage
from serve.http.workbench.bound_reply import ANSWER, SEARCH, UNREAD, fit_answer, fit_search
from tests.serve.answering import answer
from tests.serve.service import DISPUTED, SmallService


@pytest.fixture(scope="module")
def service() -> SmallService:
    return SmallService(citations=DISPUTED)


def calls(url: str, *asked: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the replies to calls of tools, by one client."""

    async def connected() -> list[Any]:
        async with Client(f"{url}/mcp") as client:
            return [await client.call_tool(name, arguments) for name, arguments in asked]

    return asyncio.run(connected())


def test_tools_return_references_and_related_citations(url: str) -> None:
    styled, filed, missing, none, related, unknown = calls(
        url,
        ("format_references", {"pmids": [1, 2], "style": "ama"}),
        ("format_references", {"pmids": [2], "format": "bibtex"}),
        ("format_references", {"pmids": [1, 99]}),
        ("format_references", {"pmids": []}),
        ("related_citations", {"pmid": 1, "k": 2, "system": "bm25"}),
        ("related_citations", {"pmid": 99}),
    )
    assert styled.structured_content["text"].startswith("1. Doe J. Metformin and AMPK.")
    assert "@article{pmid2," in filed.content[0].text
    assert [c["pmid"] for c in related.structured_content["citations"]] == [4]
    for reply, said in ((missing, "PMID 99: not in"), (none, "pmids: "), (unknown, "PMID 99 ")):
        assert (reply.is_error, said in reply.content[0].text) == (True, True)


def test_answer_ends_with_its_references_and_a_record_is_not_shortened(url: str) -> None:
    reply, whole, short = calls(
        url,
        ("answer_question", {"question": "Does metformin activate AMPK?", "type": "yesno"}),
        ("get_citation", {"pmid": 1, "max_chars": 2000}),
        ("get_citation", {"pmid": 1, "max_chars": 10}),
    )
    _, _, listed = reply.content[0].text.partition("\nReferences:\n")
    assert "PMID 1: Doe J. Metformin and AMPK." in listed
    assert any(line.startswith("Doe J.") for line in reply.structured_content["references"])
    assert reply.structured_content["left_out"] == 0
    # A record is not shortened, so a lower limit is an error.
    assert (whole.is_error, short.is_error) == (False, True)


PMIDS = range(1, 31)
LONG = replace(
    answer("Is iron stored?"),
    citations=tuple(RankedCitation(n, 1.0, title=f"Title {n}") for n in PMIDS),
    evidence=tuple(
        Evidence(Passage(n, "abstract", 0, 9, f"Iron {n} is stored. " * 9), title=f"Title {n}")
        for n in PMIDS
    ),
    snippets=(Passage(30, "abstract", 0, 9, "Iron 30"),),
    ideal=(Sentence("Iron is stored.", (30, 29), 1.0), Sentence("In ferritin.", (28,), 1.0)),
    shown=(29, 0, 27),
)
RECORDS = [Citation(pmid=n, title=f"Title {n}.") for n in (28, 29, 30)]


@pytest.mark.parametrize("limit", [3500, 6000, 12_000])
def test_short_answer_keeps_its_cited_citations(limit: int) -> None:
    reply, words = fit_answer(LONG, RECORDS, limit)
    assert max(len(words), len(ANSWER.dump_json(reply))) <= limit
    assert reply.left_out > 0
    assert f"{reply.left_out} more citations were left out because of max_chars." in words
    assert len(reply.references) == 3
    assert {28, 29, 30} <= {citation.pmid for citation in reply.citations}
    assert len(reply.citations) + reply.left_out == 30
    # `shown` has the new positions in the evidence.
    assert reply.shown is not None
    shown = [reply.evidence[place].passage.pmid for place in reply.shown]
    assert shown == [n for n in (30, 1, 28) if n in {c.pmid for c in reply.citations}]


def test_answer_within_the_limit_is_complete() -> None:
    reply, words = fit_answer(LONG, RECORDS[1:], 1_000_000)
    assert (reply.left_out, len(reply.citations), "left out" in words) == (0, 30, False)
    assert reply.shown == (29, 0, 27)
    assert f"PMID 28: {UNREAD}" in words
    long = replace(LONG, ideal=(Sentence("x" * 3000, (1,), 1.0),))
    with pytest.raises(InputError, match=r"max_chars: 1,000 is too small; the shortest reply has"):
        fit_answer(long, [], 1000)


def test_short_search_leaves_out_the_last_citations() -> None:
    reply, words = fit_search(LONG, 4000)
    assert [citation.pmid for citation in reply.citations] == [*PMIDS[: len(reply.citations)]]
    assert f"{30 - len(reply.citations)} more citations were left out" in words
    assert len(SEARCH.dump_json(reply)) <= 4000
