"""References as tools for models, and replies that keep to a number of characters."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from mcp import Client

from cluster.answers import Evidence, RankedCitation, Sentence
from cluster.errors import InputError
from cluster.records import Citation, Passage
from cluster.settings.settings import load_settings
from serve.http.api import create_api
from serve.http.workbench.bound_reply import ANSWER, SEARCH, UNREAD, fit_answer, fit_search
from tests.serve.answering import answer
from tests.serve.http_server import serving
from tests.serve.service import DISPUTED, SmallService


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    service = SmallService(citations=DISPUTED)
    with serving(create_api(service, load_settings().serve)) as port:
        yield port


def call(port: int, name: str, **arguments: Any) -> Any:
    async def connected() -> Any:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(connected())


def test_references_come_in_a_style_or_a_format(port: int) -> None:
    styled = call(port, "format_references", pmids=[1, 2], style="ama")
    assert styled.structured_content["text"].startswith("1. Doe J. Metformin and AMPK.")
    filed = call(port, "format_references", pmids=[2], format="bibtex")
    assert "@article{pmid2," in filed.content[0].text
    for pmids, said in (([1, 99], "PMID 99: not in this index"), ([], "pmids: ")):
        reply = call(port, "format_references", pmids=pmids)
        assert (reply.is_error, said in reply.content[0].text) == (True, True)


def test_related_citations_leave_out_the_citation_itself(port: int) -> None:
    reply = call(port, "related_citations", pmid=1, k=2, system="bm25")
    assert [c["pmid"] for c in reply.structured_content["citations"]] == [4]
    assert call(port, "related_citations", pmid=99).is_error is True


def test_an_answer_ends_with_its_references_and_a_record_is_never_cut(port: int) -> None:
    asked = {"question": "Does metformin activate AMPK?", "type": "yesno"}
    reply = call(port, "answer_question", **asked)
    _, _, listed = reply.content[0].text.partition("\nReferences:\n")
    assert "PMID 1: Doe J. Metformin and AMPK." in listed
    assert any(line.startswith("Doe J.") for line in reply.structured_content["references"])
    assert reply.structured_content["left_out"] == 0
    # What cannot be cut is refused.
    assert call(port, "get_citation", pmid=1, max_chars=2000).is_error is False
    assert call(port, "get_citation", pmid=1, max_chars=10).is_error is True


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


@pytest.mark.parametrize("limit", [3000, 6000, 12_000])
def test_an_answer_keeps_its_cited_citations_longest(limit: int) -> None:
    reply, words = fit_answer(LONG, RECORDS, limit)
    assert len(words) <= limit
    assert len(ANSWER.dump_json(reply)) <= limit
    assert reply.left_out > 0
    assert f"{reply.left_out} more citations were left out to keep to max_chars." in words
    assert len(reply.references) == 3
    assert {28, 29, 30} <= {citation.pmid for citation in reply.citations}
    assert len(reply.citations) + reply.left_out == 30
    # What the model was shown is named by its new places.
    assert reply.shown is not None
    shown = [reply.evidence[place].passage.pmid for place in reply.shown]
    assert shown == [n for n in (30, 1, 28) if n in {c.pmid for c in reply.citations}]


def test_an_answer_that_fits_is_whole_and_names_records_that_could_not_be_read() -> None:
    reply, words = fit_answer(LONG, RECORDS[1:], 1_000_000)
    assert (reply.left_out, len(reply.citations), "left out" in words) == (0, 30, False)
    assert reply.shown == (29, 0, 27)
    assert f"PMID 28: {UNREAD}" in words


def test_a_search_is_cut_from_its_end() -> None:
    reply, words = fit_search(LONG, 4000)
    assert [citation.pmid for citation in reply.citations] == [*PMIDS[: len(reply.citations)]]
    assert f"{30 - len(reply.citations)} more citations were left out" in words
    assert len(SEARCH.dump_json(reply)) <= 4000


def test_a_reply_that_cannot_be_short_enough_says_how_long_it_is() -> None:
    long = replace(LONG, ideal=(Sentence("x" * 3000, (1,), 1.0),))
    with pytest.raises(InputError, match=r"max_chars: 1,000 are too few; the shortest reply has"):
        fit_answer(long, [], 1000)
