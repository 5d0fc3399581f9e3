"""Parsing of NCBI's replies, with error texts that NCBI has sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.entrez.read_replies import Fetched, TransientError, read_citations, read_search
from cluster.errors import InputError, PubMedError
from tests.serve.eutils_server import records


def search_reply(**result: Any) -> bytes:
    return json.dumps({"esearchresult": result}).encode()


def fetch_refusal(text: str) -> bytes:
    return f'<?xml version="1.0"?>\n<eFetchResult>\n<ERROR>{text}</ERROR>\n</eFetchResult>'.encode()


def test_transient_search_errors_are_recognised(subtests: pytest.Subtests) -> None:
    for reply in [
        b'{"error":"API rate limit exceeded","count":"11","limit":"10"}',
        search_reply(ERROR="Search Backend failed: Exception:\nRead failed"),
        b'{"esearchresult":{"ERROR":"Search Backend failed: Exception:\nbare line feed"}}',
        b'{"esearchresult":{"count":"3","idlist":["1","2"',
        b'{"esearchresult":{"count":"many","idlist":[]}}',
        b'{"esearchresult":{"count":Infinity,"idlist":[]}}',
        search_reply(ERROR="Address table is empty for service"),
        search_reply(ERROR="Couldn't resolve #exLinkSrv2, the address table is empty."),
        b'{"header":{}}',
        b"<html>busy</html>",
        b"[" * 100_000,
        b"null",
        b"",
    ]:
        with subtests.test(reply=reply), pytest.raises(TransientError):
            read_search(reply)


def test_refused_queries_are_input_errors() -> None:
    beyond = "Search Backend failed: Exception:\n'retstart' cannot be larger than 9998."
    for reply, said in (
        (search_reply(ERROR="Invalid query near )"), "Invalid query near"),
        (b'{"esearchresult":{"ERROR":"Invalid query:\n no field"}}', "Invalid query: no field"),
        (search_reply(ERROR=beyond), "9998"),
    ):
        with pytest.raises(InputError, match=said):
            read_search(reply)


def test_unknown_pmids_give_an_empty_result() -> None:
    unknown = fetch_refusal("ID list is empty! Possibly it has no correct IDs.")
    assert read_citations(unknown) == read_citations(records([]).encode()) == Fetched()


def test_transient_fetch_errors_are_recognised(subtests: pytest.Subtests) -> None:
    for reply in [
        records([1, 2, 3]).encode()[:-40],
        fetch_refusal("External viewer error: Empty Response. Status: Timeout"),
        fetch_refusal("proxy_stream(): Failed to connect to PubOne service"),
        fetch_refusal("NCBI C++ Exception: Read failed: EOF"),
        fetch_refusal("Database is not supported: pubmed"),
        b'{"error":"API rate limit exceeded"}',
        b"<html><body>Bad gateway</body></html>",
        b'{"result": 1}',
        b"",
    ]:
        with subtests.test(reply=reply), pytest.raises(TransientError):
            read_citations(reply)


def test_other_fetch_errors_are_quoted() -> None:
    with pytest.raises(PubMedError, match="Invalid db name"):
        read_citations(fetch_refusal("Invalid db name specified: pubmd"))
