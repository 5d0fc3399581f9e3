"""E-utilities at their worst, the cache and the pace, against a server on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path

import pytest

from cluster.entrez.ask_entrez import Patience
from cluster.entrez.keep_pace import RateLimiter
from cluster.entrez.search_pubmed import PubMed
from cluster.errors import InputError, PubMedError
from tests.serve.eutils_server import EUtils, Reply
from tests.serve.http_server import free_port
from tests.serve.pubmed_online import KEY, fetch, make, search, settings_for

pytestmark = pytest.mark.slow

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
def test_a_passing_failure_of_a_search_is_asked_again(
    server: EUtils, tmp_path: Path, failure: Reply
) -> None:
    server.script = [failure, failure]
    assert search(make(server, tmp_path)) == [31, 7, 12, 5]
    assert len(server.requests) == 3


def test_a_failure_that_stays_is_given_up_with_its_reason(server: EUtils, tmp_path: Path) -> None:
    server.script, server.for_ever = [Reply("busy", 503)], True
    with pytest.raises(PubMedError, match=r"esearch\.fcgi: failed 5 times.*HTTP 503; try again"):
        search(make(server, tmp_path))
    assert len(server.requests) == 5


@pytest.mark.parametrize("status", [301, 403, 404])
def test_a_lasting_refusal_is_not_asked_again(server: EUtils, tmp_path: Path, status: int) -> None:
    server.script = [Reply("no", status)]
    with pytest.raises(PubMedError, match=rf"HTTP {status}; check entrez\.base_url"):
        search(make(server, tmp_path))
    assert len(server.requests) == 1


def test_a_refused_key_is_not_asked_again_and_never_shown(
    server: EUtils, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "sesame")
    server.script = [Reply('{"error":"API key invalid","api-key":"sesame"}', 400)]
    with pytest.raises(PubMedError, match="refuse the API key") as caught:
        search(make(server, tmp_path))
    assert "sesame" not in str(caught.value)
    assert len(server.requests) == 1


def test_too_many_requests_hold_back_everyone(server: EUtils, tmp_path: Path) -> None:
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


def test_a_silent_server_is_given_up_at_the_deadline_with_the_last_problem(
    server: EUtils, tmp_path: Path
) -> None:
    server.script, server.for_ever = [Reply("", 503, {"Retry-After": "9"})], True
    with pytest.raises(PubMedError, match=r"not done within 0\.2 s \(last: HTTP 503\)"):
        search(make(server, tmp_path, deadline_s=0.2))


def test_an_address_where_nobody_answers_is_named(tmp_path: Path) -> None:
    patience = Patience(retries=1, backoff_s=0.001)
    closed = f"http://127.0.0.1:{free_port()}"
    for url, said in ((closed, "broken connection"), ("localhost", r"check entrez\.base_url")):
        with pytest.raises(PubMedError, match=said):
            search(make(EUtils(url=url), tmp_path, patience))


def test_a_reply_without_end_is_cut_short(server: EUtils, tmp_path: Path) -> None:
    server.script = [Reply("x" * 5000)]
    with pytest.raises(PubMedError, match="more than 1000 bytes"):
        search(make(server, tmp_path, Patience(max_reply_bytes=1000)))
    assert len(server.requests) == 1


def test_the_same_request_is_not_sent_twice(server: EUtils, tmp_path: Path) -> None:
    for _ in range(2):
        assert search(make(server, tmp_path)) == [31, 7, 12, 5]
        assert fetch(make(server, tmp_path), 31, 5) == [31, 5]
    assert [each["utility"] for each in server.requests] == ["esearch", "efetch"]


def test_a_spoilt_cache_is_asked_past(server: EUtils, tmp_path: Path) -> None:
    pubmed = make(server, tmp_path)
    search(pubmed)
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:10])
    assert search(pubmed) == [31, 7, 12, 5]
    assert search(pubmed) == [31, 7, 12, 5]
    assert len(server.requests) == 2


def test_the_cache_does_not_ask_whose_request_it_is(
    server: EUtils, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "sesame")
    search(make(server, tmp_path, email="a@b.c"))
    monkeypatch.setenv(KEY, "another")
    search(make(server, tmp_path, email="d@e.f"))
    assert len(server.requests) == 1


def test_a_refusal_is_not_cached(server: EUtils, tmp_path: Path) -> None:
    server.script = [Reply('{"esearchresult":{"ERROR":"Invalid query"}}')]
    with pytest.raises(InputError, match="Invalid query"):
        search(make(server, tmp_path))
    assert search(make(server, tmp_path)) == [31, 7, 12, 5]


def test_a_cache_that_cannot_be_written_is_told_and_searched_without(
    server: EUtils, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        assert search(make(server, tmp_path)) == [31, 7, 12, 5]
    assert "not cached" in caplog.text


def test_threads_may_share_one_client(server: EUtils, tmp_path: Path) -> None:
    pubmed = make(server, tmp_path, cache_days=0)
    results: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: results.append(search(pubmed, limit=3))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[31, 7, 12]] * 4
