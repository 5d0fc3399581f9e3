"""Searching PubMed and fetching records, with a local server."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError, PubMedError
from tests.serve.eutils_server import REACH, EUtils, Reply
from tests.serve.pubmed_online import KEY, fetch, make, search

pytestmark = pytest.mark.slow


def test_request_has_all_parameters_and_an_optional_key(
    server: EUtils, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"query": "a AND b", "sort": "pub_date", "date_from": date(2019, 3, 1)}
    search(make(server, tmp_path, email="a@b.c", tool="t"), **asked)
    monkeypatch.setenv(KEY, "sesame")
    search(make(server, tmp_path / "other"), **asked)
    assert server.requests[1]["api_key"] == "sesame"
    sent = {k: v for k, v in server.requests[0].items() if k not in ("at", "retmode", "retmax")}
    assert sent == {
        "utility": "esearch",
        "db": "pubmed",
        "term": "a AND b",
        "sort": "pub_date",
        "datetype": "pdat",
        "mindate": "2019/03/01",
        "maxdate": "3000/12/31",
        "tool": "t",
        "email": "a@b.c",
    }


def test_invalid_arguments_are_rejected_before_a_request(
    server: EUtils, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    days = {"date_from": date(2020, 1, 2), "date_to": date(2020, 1, 1)}
    for asked, said in [
        ({"query": "  \n"}, "query: it is empty"),
        ({"limit": 0}, "limit: 0"),
        (days, "2020-01-02 is after date_to, 2020-01-01"),
    ]:
        with subtests.test(said=said), pytest.raises(InputError, match=said):
            search(make(server, tmp_path), **asked)
    assert server.requests == []


@pytest.mark.parametrize(
    "warnings",
    [
        {"errorlist": {"phrasesnotfound": ["egfrx"], "fieldsnotfound": []}},
        {"warninglist": {"quotedphrasesnotfound": ["egfrx"]}},
    ],
)
def test_unknown_phrase_without_results_is_an_error(
    server: EUtils, tmp_path: Path, warnings: dict[str, Any]
) -> None:
    server.entered, server.warnings = {}, warnings
    with pytest.raises(InputError, match="does not know 'egfrx'"):
        search(make(server, tmp_path))


def test_ignored_phrases_are_reported(server: EUtils, tmp_path: Path) -> None:
    server.warnings = {"errorlist": {"phrasesnotfound": ["egfrx"]}}
    told: list[str] = []
    assert search(make(server, tmp_path), tell=told.append) == [31, 7, 12, 5]
    assert told == ["PubMed ignored 'egfrx', which it does not know"]


def test_empty_result_is_an_empty_list(server: EUtils, tmp_path: Path) -> None:
    server.entered = {}
    server.warnings = {"warninglist": {"outputmessages": ["No items found."]}}
    assert search(make(server, tmp_path)) == []


def test_records_are_fetched_in_batches_in_the_requested_order(
    server: EUtils, tmp_path: Path
) -> None:
    server.entered = dict.fromkeys(range(1, 451), date(2020, 1, 1))
    wanted = list(range(450, 0, -1))
    assert fetch(make(server, tmp_path), *wanted) == wanted
    assert sorted(each["id"].count(",") + 1 for each in server.requests) == [50, 200, 200]


def test_missing_records_are_reported(server: EUtils, tmp_path: Path) -> None:
    server.books = [9]
    told: list[str] = []
    assert fetch(make(server, tmp_path), 31, 8, 9, tell=told.append) == [31]
    assert told == ["PubMed returned no citation for 2 of 3 PMIDs: 8, 9 (PMID 9: a book article)"]


@pytest.fixture
def large(server: EUtils) -> EUtils:
    """25,000 records over 50 years, in an order that is not that of their dates."""
    draw = random.Random(4)
    first = date(1970, 1, 1)
    server.entered = {
        pmid: first + timedelta(days=draw.randrange(18_000)) for pmid in range(1, 25_001)
    }
    return server


def test_long_list_continues_with_the_newest_records(large: EUtils, tmp_path: Path) -> None:
    pmids = search(make(large, tmp_path), limit=12_000)
    assert pmids[:REACH] == list(large.entered)[:REACH]
    assert len(set(pmids)) == len(pmids) == 12_000
    assert min(large.entered[pmid] for pmid in pmids[REACH:]) > date(1995, 1, 1)


def test_long_list_uses_one_stored_search(large: EUtils, tmp_path: Path) -> None:
    search(make(large, tmp_path), limit=100_000, query="a AND b")
    first, *spans = large.requests
    assert (first["term"], first["usehistory"]) == ("a AND b", "y")
    assert {each["term"].split(" AND ")[0] for each in spans} == {"#1"}
    assert all("retstart" not in each for each in large.requests)


def test_lost_search_is_stored_again(large: EUtils, tmp_path: Path) -> None:
    large.script = [
        Reply(large.esearch({"term": "egfr", "retmax": "9999", "usehistory": "y"})),
        Reply('{"esearchresult":{"ERROR":"Unable to obtain query #1"}}'),
    ]
    large.forget_stored_searches()
    assert sorted(search(make(large, tmp_path), limit=100_000)) == sorted(large.entered)


def test_repeatedly_lost_search_is_an_error(large: EUtils, tmp_path: Path) -> None:
    lost = Reply('{"esearchresult":{"ERROR":"Unable to obtain query #1"}}')
    stored = Reply(large.esearch({"term": "egfr", "retmax": "9999", "usehistory": "y"}))
    large.script, large.for_ever = [stored, lost] * 4, True
    with pytest.raises(PubMedError, match="lost a stored search"):
        search(make(large, tmp_path), limit=100_000)


def test_day_with_too_many_records_is_an_error(server: EUtils, tmp_path: Path) -> None:
    server.entered = dict.fromkeys(range(1, 11_001), date(2001, 2, 3))
    with pytest.raises(PubMedError, match=r"11000 records were entered on 2001-02-03"):
        search(make(server, tmp_path), limit=20_000)


def test_unlisted_records_are_reported(server: EUtils, tmp_path: Path) -> None:
    server.script = [Reply('{"esearchresult":{"count":"3","idlist":["1","2"]}}')]
    told: list[str] = []
    assert search(make(server, tmp_path), tell=told.append) == [1, 2]
    assert told == ["PubMed lists only 2 of the 3 records that it counts"]
