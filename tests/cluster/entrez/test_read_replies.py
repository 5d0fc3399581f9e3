"""What NCBI's replies mean; the refusals are worded as they have been seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.entrez.read_replies import Fetched, PassingError, read_citations, read_search
from cluster.errors import InputError, PubMedError
from tests.serve.eutils_server import records


def search_reply(**result: Any) -> bytes:
    return json.dumps({"esearchresult": result}).encode()


def fetch_refusal(text: str) -> bytes:
    return f'<?xml version="1.0"?>\n<eFetchResult>\n<ERROR>{text}</ERROR>\n</eFetchResult>'.encode()


def test_count_pmids_and_the_stored_search_are_read() -> None:
    reply = search_reply(count="12", idlist=["31", "7"], webenv="MCID_1", querykey="1")
    found = read_search(reply)
    assert (found.count, found.pmids) == (12, (31, 7))
    assert (found.web_env, found.query_key) == ("MCID_1", "1")


def test_a_search_reply_that_may_be_better_next_time_is_passing(subtests: pytest.Subtests) -> None:
    for reply in [
        b'{"error":"API rate limit exceeded","count":"11","limit":"10"}',
        search_reply(ERROR="Search Backend failed: Exception:\nRead failed"),
        b'{"esearchresult":{"ERROR":"Search Backend failed: Exception:\nbare line feed"}}',
        b'{"esearchresult":{"count":"3","idlist":["1","2"',
        b'{"esearchresult":{"count":"many","idlist":[]}}',
        b'{"esearchresult":{"count":Infinity,"idlist":[]}}',
        b'{"header":{}}',
        b"<html>busy</html>",
        b"[" * 100_000,
        b"null",
        b"",
    ]:
        with subtests.test(reply=reply), pytest.raises(PassingError):
            read_search(reply)


def test_a_refused_query_is_for_the_user_to_mend() -> None:
    beyond = "Search Backend failed: Exception:\n'retstart' cannot be larger than 9998."
    for reply, said in (
        (search_reply(ERROR="Invalid query near )"), "Invalid query near"),
        (b'{"esearchresult":{"ERROR":"Invalid query:\n no field"}}', "Invalid query: no field"),
        (search_reply(ERROR=beyond), "9998"),
    ):
        with pytest.raises(InputError, match=said):
            read_search(reply)


def test_a_refused_key_names_the_setting_and_never_the_key() -> None:
    with pytest.raises(PubMedError, match=r"entrez\.api_key_env") as caught:
        read_search(b'{"error":"API key invalid","api-key":"sesame","count":"4","limit":"3"}')
    assert "sesame" not in str(caught.value)


def test_records_become_citations_and_a_book_is_rejected_by_name() -> None:
    fetched = read_citations(records([7, 31], books=[9]).encode())
    assert [(each.pmid, each.title) for each in fetched.citations][1] == (31, "Title 31")
    assert len(fetched.citations) == 2
    assert fetched.rejected == ("PMID 9: a book article",)


def test_ids_that_pubmed_does_not_know_are_no_citation() -> None:
    unknown = fetch_refusal("ID list is empty! Possibly it has no correct IDs.")
    assert read_citations(unknown) == read_citations(records([]).encode()) == Fetched()


def test_a_fetch_reply_that_may_be_better_next_time_is_passing(subtests: pytest.Subtests) -> None:
    for reply in [
        records([1, 2, 3]).encode()[:-40],
        fetch_refusal("External viewer error: Empty Response. Status: Timeout"),
        b'{"error":"API rate limit exceeded"}',
        b"<html><body>Bad gateway</body></html>",
        b'{"result": 1}',
        b"",
    ]:
        with subtests.test(reply=reply), pytest.raises(PassingError):
            read_citations(reply)


def test_another_refusal_to_fetch_is_final_and_quoted() -> None:
    with pytest.raises(PubMedError, match="Invalid db name"):
        read_citations(fetch_refusal("Invalid db name specified: pubmd"))
