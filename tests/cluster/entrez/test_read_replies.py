"""What NCBI's replies mean; the refusals are worded as they have been seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.entrez.read_replies import (
    Fetched,
    HistoryLostError,
    PassingError,
    read_citations,
    read_search,
)
from cluster.errors import CiteRayError, InputError, PubMedError
from tests.serve.eutils_server import records


def search_reply(**result: Any) -> bytes:
    return json.dumps({"esearchresult": result}).encode()


def fetch_refusal(text: str) -> bytes:
    return f'<?xml version="1.0"?>\n<eFetchResult>\n<ERROR>{text}</ERROR>\n</eFetchResult>'.encode()


def test_count_and_pmids_are_numbers() -> None:
    found = read_search(search_reply(count="12", idlist=["31", "7"]))
    assert (found.count, found.pmids) == (12, (31, 7))


def test_the_stored_search_is_read() -> None:
    found = read_search(search_reply(count="0", idlist=[], webenv="MCID_1", querykey="1"))
    assert (found.web_env, found.query_key) == ("MCID_1", "1")


def test_unknown_phrases_fields_and_quotations_are_gathered() -> None:
    found = read_search(
        search_reply(
            count="0",
            idlist=[],
            errorlist={"phrasesnotfound": ["egfrx"], "fieldsnotfound": ["tiabx"]},
            warninglist={
                "phrasesignored": ["and"],
                "quotedphrasesnotfound": ['"no such"'],
                "outputmessages": ["No items found."],
            },
        )
    )
    assert found.unknown == ("egfrx", "tiabx", '"no such"')


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


def test_a_rate_limit_says_that_there_is_a_crowd() -> None:
    with pytest.raises(PassingError) as caught:
        read_search(b'{"error":"API rate limit exceeded"}')
    assert caught.value.crowded


def test_a_refused_query_is_for_the_user_to_mend() -> None:
    with pytest.raises(InputError, match="Invalid query near"):
        read_search(search_reply(ERROR="Invalid query near )"))


def test_a_refusal_with_a_bare_line_feed_in_its_string_is_read() -> None:
    with pytest.raises(InputError, match="Invalid query: no field"):
        read_search(b'{"esearchresult":{"ERROR":"Invalid query:\n no field"}}')


def test_asking_beyond_what_can_be_listed_is_not_passing() -> None:
    text = "Search Backend failed: Exception:\n'retstart' cannot be larger than 9998."
    with pytest.raises(InputError, match="9998"):
        read_search(search_reply(ERROR=text))


def test_a_refused_key_names_the_setting_and_never_the_key() -> None:
    with pytest.raises(PubMedError, match=r"entrez\.api_key_env") as caught:
        read_search(b'{"error":"API key invalid","api-key":"sesame","count":"4","limit":"3"}')
    assert "sesame" not in str(caught.value)


def test_a_forgotten_search_is_told_from_other_refusals() -> None:
    with pytest.raises(HistoryLostError):
        read_search(search_reply(ERROR="Unable to obtain query #1"))


def test_records_become_citations() -> None:
    fetched = read_citations(records([7, 31]).encode())
    assert [each.pmid for each in fetched.citations] == [7, 31]
    assert fetched.citations[1].title == "Title 31"
    assert fetched.rejected == ()


def test_a_book_is_rejected_by_name() -> None:
    fetched = read_citations(records([7], books=[9]).encode())
    assert fetched.rejected == ("PMID 9: a book article",)


def test_an_empty_set_is_no_citation() -> None:
    assert read_citations(records([]).encode()) == Fetched()


def test_ids_that_pubmed_does_not_know_are_no_citation() -> None:
    reply = fetch_refusal("ID list is empty! Possibly it has no correct IDs.")
    assert read_citations(reply) == Fetched()


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


def test_an_entity_bomb_is_not_expanded() -> None:
    bomb = (
        '<!DOCTYPE PubmedArticleSet [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
        "<PubmedArticleSet><PubmedArticle>&b;</PubmedArticle></PubmedArticleSet>"
    )
    with pytest.raises(CiteRayError, match="declares entities"):
        read_citations(bomb.encode())
