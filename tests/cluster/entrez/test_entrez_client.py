"""Requests to E-utilities: searches, records, retries, caching and rate limits."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from cluster.entrez.entrez_client import Patience
from cluster.entrez.rate_limiter import RateLimiter
from cluster.entrez.search_pubmed import PubMed
from cluster.errors import InputError, PubMedError
from tests.serve.eutils_server import REACH, EUtils, Reply, eutils
from tests.serve.http_server import free_port
from tests.serve.pubmed_online import KEY, fetch, make, search, settings_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running() -> Iterator[EUtils]:
    with eutils(EUtils()) as running:
        yield running


@pytest.fixture
def server(running: EUtils) -> EUtils:
    running.start_over(dict.fromkeys((31, 7, 12, 5), date(2020, 1, 1)))
    return running


RATE_LIMIT = json.dumps({"error": "API rate limit exceeded", "count": "11", "limit": "10"})


@pytest.mark.parametrize(
    "failure",
    [
        Reply(RATE_LIMIT, 429),
        Reply("", 429, {"Retry-After": "0"}),
        Reply("<html>Bad gateway</html>", 502),
        Reply(RATE_LIMIT),
        Reply('{"esearchresult":{"ERROR":"Search Backend failed: Timeout"}}', 400),
        Reply('{"esearchresult":{"count":"4","idlist":["31","7"]}}', cut=20),
    ],
    ids=lambda reply: f"{reply.status}-{reply.body[:40]}",
)
def test_transient_errors_are_retried(server: EUtils, tmp_path: Path, failure: Reply) -> None:
    server.script = [failure, failure]
    assert search(make(server, tmp_path)) == [31, 7, 12, 5]
    assert len(server.requests) == 3


def test_retries_end_with_the_last_error(server: EUtils, tmp_path: Path) -> None:
    server.script, server.for_ever = [Reply("busy", 503)], True
    with pytest.raises(PubMedError, match=r"esearch\.fcgi: failed 5 times.*HTTP 503; try again"):
        search(make(server, tmp_path))
    assert len(server.requests) == 5


@pytest.mark.parametrize("status", [301, 403, 404])
def test_permanent_errors_are_not_retried(server: EUtils, tmp_path: Path, status: int) -> None:
    server.script = [Reply("no", status)]
    with pytest.raises(PubMedError, match=rf"HTTP {status}; check entrez\.base_url"):
        search(make(server, tmp_path))
    assert len(server.requests) == 1


def test_invalid_api_key_is_not_retried_or_shown(
    server: EUtils, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "sesame")
    server.script = [Reply('{"error":"API key invalid","api-key":"sesame"}', 400)]
    with pytest.raises(PubMedError, match="refuse the API key") as caught:
        search(make(server, tmp_path))
    assert "sesame" not in str(caught.value)
    assert len(server.requests) == 1


def test_rate_limit_errors_pause_the_shared_limiter(server: EUtils, tmp_path: Path) -> None:
    held: list[float] = []

    class Noting(RateLimiter):
        def hold(self, seconds: float) -> None:
            held.append(seconds)

    server.script = [Reply("", 429, {"Retry-After": "0"}), Reply(RATE_LIMIT), Reply("", 503)]
    settings = settings_for(server, tmp_path)
    asyncio.run(
        PubMed(settings, limiter=Noting(100_000), patience=Patience(backoff_s=0.001)).search(
            "egfr", limit=1
        )
    )
    assert len(held) == 2


def test_deadline_ends_retries_with_the_last_error(server: EUtils, tmp_path: Path) -> None:
    server.script, server.for_ever = [Reply("", 503, {"Retry-After": "9"})], True
    with pytest.raises(PubMedError, match=r"not finished within 0\.2 s \(last: HTTP 503\)"):
        search(make(server, tmp_path, deadline_s=0.2))


def test_unreachable_address_is_reported(tmp_path: Path) -> None:
    patience = Patience(retries=1, backoff_s=0.001)
    closed = f"http://127.0.0.1:{free_port()}"
    for url, said in ((closed, "broken connection"), ("localhost", r"check entrez\.base_url")):
        with pytest.raises(PubMedError, match=said):
            search(make(EUtils(url=url), tmp_path, patience))


def test_reply_size_is_limited(server: EUtils, tmp_path: Path) -> None:
    server.script = [Reply("x" * 5000)]
    with pytest.raises(PubMedError, match="more than 1000 bytes"):
        search(make(server, tmp_path, Patience(max_reply_bytes=1000)))
    assert len(server.requests) == 1


def test_replies_are_cached_for_all_callers(
    server: EUtils, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for caller in ("sesame", "another"):
        monkeypatch.setenv(KEY, caller)
        pubmed = make(server, tmp_path, email=f"{caller}@b.c")
        assert search(pubmed) == [31, 7, 12, 5]
        assert fetch(pubmed, 31, 5) == [31, 5]
    assert [each["utility"] for each in server.requests] == ["esearch", "efetch"]


def test_damaged_cache_entries_are_requested_again(server: EUtils, tmp_path: Path) -> None:
    pubmed = make(server, tmp_path)
    search(pubmed)
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:10])
    assert search(pubmed) == [31, 7, 12, 5]
    assert search(pubmed) == [31, 7, 12, 5]
    assert len(server.requests) == 2


def test_refused_queries_are_not_cached(server: EUtils, tmp_path: Path) -> None:
    server.script = [Reply('{"esearchresult":{"ERROR":"Invalid query"}}')]
    with pytest.raises(InputError, match="Invalid query"):
        search(make(server, tmp_path))
    assert search(make(server, tmp_path)) == [31, 7, 12, 5]


def test_unwritable_cache_is_logged_and_skipped(
    server: EUtils, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        assert search(make(server, tmp_path)) == [31, 7, 12, 5]
    assert "not cached" in caplog.text


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
    messages: list[str] = []
    assert search(make(server, tmp_path), tell=messages.append) == [31, 7, 12, 5]
    assert messages == ["PubMed ignored 'egfrx', which it does not know"]


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
    messages: list[str] = []
    assert fetch(make(server, tmp_path), 31, 8, 9, tell=messages.append) == [31]
    assert messages == [
        "PubMed returned no citation for 2 of 3 PMIDs: 8, 9 (PMID 9: a book article)"
    ]


@pytest.fixture
def large(server: EUtils) -> EUtils:
    """25,000 records over 50 years, in an order that is not that of their dates."""
    draw = random.Random(4)
    first = date(1970, 1, 1)
    server.entered = {
        pmid: first + timedelta(days=draw.randrange(18_000)) for pmid in range(1, 25_001)
    }
    return server


def test_long_list_continues_with_the_newest_records_of_one_stored_search(
    large: EUtils, tmp_path: Path
) -> None:
    pmids = search(make(large, tmp_path), limit=12_000, query="a AND b")
    assert pmids[:REACH] == list(large.entered)[:REACH]
    assert len(set(pmids)) == len(pmids) == 12_000
    assert min(large.entered[pmid] for pmid in pmids[REACH:]) > date(1995, 1, 1)
    first, *spans = large.requests
    assert (first["term"], first["usehistory"]) == ("a AND b", "y")
    assert {each["term"].split(" AND ")[0] for each in spans} == {"#1"}
    assert all("retstart" not in each for each in large.requests)


@pytest.fixture
def lost(large: EUtils) -> list[Reply]:
    """Reply to a search that is stored, and the reply when it is used after its loss."""
    return [
        Reply(large.esearch({"term": "egfr", "retmax": "9999", "usehistory": "y"})),
        Reply('{"esearchresult":{"ERROR":"Unable to obtain query #1"}}'),
    ]


def test_lost_search_is_stored_again(large: EUtils, lost: list[Reply], tmp_path: Path) -> None:
    large.script = lost
    large.forget_stored_searches()
    assert sorted(search(make(large, tmp_path), limit=100_000)) == sorted(large.entered)


def test_repeatedly_lost_search_is_an_error(
    large: EUtils, lost: list[Reply], tmp_path: Path
) -> None:
    large.script, large.for_ever = lost * 4, True
    with pytest.raises(PubMedError, match="lost a stored search"):
        search(make(large, tmp_path), limit=100_000)


def test_day_with_too_many_records_is_an_error(server: EUtils, tmp_path: Path) -> None:
    server.entered = dict.fromkeys(range(1, 11_001), date(2001, 2, 3))
    with pytest.raises(PubMedError, match=r"11000 records were entered on 2001-02-03"):
        search(make(server, tmp_path), limit=20_000)


def test_unlisted_records_are_reported(server: EUtils, tmp_path: Path) -> None:
    server.script = [Reply('{"esearchresult":{"count":"3","idlist":["1","2"]}}')]
    messages: list[str] = []
    assert search(make(server, tmp_path), tell=messages.append) == [1, 2]
    assert messages == ["PubMed lists only 2 of the 3 records that it counts"]
