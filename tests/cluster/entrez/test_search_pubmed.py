"""PubMed online: searches, records and long lists, against a server on loopback."""

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

# What goes out


def test_the_limit_goes_to_pubmed(server: EUtils, tmp_path: Path) -> None:
    assert search(make(server, tmp_path), limit=2) == [31, 7]
    assert server.requests[0]["retmax"] == "2"


def test_a_request_names_all_that_was_asked_and_a_key_only_where_there_is_one(
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


# What the user can mend


def test_what_cannot_be_asked_is_refused_before_it_is_sent(
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
def test_a_phrase_that_leaves_nothing_to_find_is_named(
    server: EUtils, tmp_path: Path, warnings: dict[str, Any]
) -> None:
    server.entered, server.warnings = {}, warnings
    with pytest.raises(InputError, match="does not know 'egfrx'"):
        search(make(server, tmp_path))


def test_a_phrase_left_out_of_a_search_that_finds_is_told(server: EUtils, tmp_path: Path) -> None:
    server.warnings = {"errorlist": {"phrasesnotfound": ["egfrx"]}}
    told: list[str] = []
    assert search(make(server, tmp_path), tell=told.append) == [31, 7, 12, 5]
    assert told == ["PubMed searched without 'egfrx', which it does not know"]


def test_nothing_found_without_a_reason_is_an_empty_list(server: EUtils, tmp_path: Path) -> None:
    server.entered = {}
    server.warnings = {"warninglist": {"outputmessages": ["No items found."]}}
    assert search(make(server, tmp_path)) == []


# Records


def test_citations_come_in_the_order_asked_and_once(server: EUtils, tmp_path: Path) -> None:
    assert fetch(make(server, tmp_path), 12, 31, 5, 12) == [12, 31, 5]


def test_records_are_fetched_200_at_a_time(server: EUtils, tmp_path: Path) -> None:
    server.entered = dict.fromkeys(range(1, 451), date(2020, 1, 1))
    wanted = list(range(450, 0, -1))
    assert fetch(make(server, tmp_path), *wanted) == wanted
    assert sorted(each["id"].count(",") + 1 for each in server.requests) == [50, 200, 200]


def test_a_missing_record_is_left_out_and_told(server: EUtils, tmp_path: Path) -> None:
    server.books = [9]
    told: list[str] = []
    assert fetch(make(server, tmp_path), 31, 8, 9, tell=told.append) == [31]
    assert told == ["PubMed gave no citation for 2 of 3 PMIDs: 8, 9 (PMID 9: a book article)"]


# Long lists


@pytest.fixture
def large(server: EUtils) -> EUtils:
    """25,000 records over 50 years, in an order that is not that of their dates."""
    draw = random.Random(4)
    first = date(1970, 1, 1)
    server.entered = {
        pmid: first + timedelta(days=draw.randrange(18_000)) for pmid in range(1, 25_001)
    }
    return server


def test_a_long_list_goes_on_with_the_newest_up_to_its_limit(large: EUtils, tmp_path: Path) -> None:
    pmids = search(make(large, tmp_path), limit=12_000)
    assert pmids[:REACH] == list(large.entered)[:REACH]
    assert len(set(pmids)) == len(pmids) == 12_000
    assert min(large.entered[pmid] for pmid in pmids[REACH:]) > date(1995, 1, 1)


def test_a_long_list_is_taken_from_one_stored_search(large: EUtils, tmp_path: Path) -> None:
    search(make(large, tmp_path), limit=100_000, query="a AND b")
    first, *spans = large.requests
    assert (first["term"], first["usehistory"]) == ("a AND b", "y")
    assert {each["term"].split(" AND ")[0] for each in spans} == {"#1"}
    assert all("retstart" not in each for each in large.requests)


def test_a_forgotten_search_is_stored_again(large: EUtils, tmp_path: Path) -> None:
    large.script = [
        Reply(large.esearch({"term": "egfr", "retmax": "9999", "usehistory": "y"})),
        Reply('{"esearchresult":{"ERROR":"Unable to obtain query #1"}}'),
    ]
    large.forget_stored_searches()
    assert sorted(search(make(large, tmp_path), limit=100_000)) == sorted(large.entered)


def test_a_search_that_is_forgotten_every_time_is_given_up(large: EUtils, tmp_path: Path) -> None:
    lost = Reply('{"esearchresult":{"ERROR":"Unable to obtain query #1"}}')
    stored = Reply(large.esearch({"term": "egfr", "retmax": "9999", "usehistory": "y"}))
    large.script, large.for_ever = [stored, lost] * 4, True
    with pytest.raises(PubMedError, match="lost a stored search"):
        search(make(large, tmp_path), limit=100_000)


def test_a_day_with_more_entries_than_are_listed_is_named(server: EUtils, tmp_path: Path) -> None:
    server.entered = dict.fromkeys(range(1, 11_001), date(2001, 2, 3))
    with pytest.raises(PubMedError, match=r"11000 records were entered on 2001-02-03"):
        search(make(server, tmp_path), limit=20_000)


def test_records_counted_but_not_listed_are_told(server: EUtils, tmp_path: Path) -> None:
    server.script = [Reply('{"esearchresult":{"count":"3","idlist":["1","2"]}}')]
    told: list[str] = []
    assert search(make(server, tmp_path), tell=told.append) == [1, 2]
    assert told == ["PubMed lists only 2 of the 3 records it counts"]
