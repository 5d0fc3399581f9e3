"""Retries, caching and rate limits of E-utilities requests, with a local server."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from cluster.entrez.entrez_client import Patience
from cluster.entrez.rate_limiter import RateLimiter
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
    with pytest.raises(PubMedError, match=r"not done within 0\.2 s \(last: HTTP 503\)"):
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


def test_replies_are_cached(server: EUtils, tmp_path: Path) -> None:
    for _ in range(2):
        assert search(make(server, tmp_path)) == [31, 7, 12, 5]
        assert fetch(make(server, tmp_path), 31, 5) == [31, 5]
    assert [each["utility"] for each in server.requests] == ["esearch", "efetch"]


def test_damaged_cache_entries_are_requested_again(server: EUtils, tmp_path: Path) -> None:
    pubmed = make(server, tmp_path)
    search(pubmed)
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:10])
    assert search(pubmed) == [31, 7, 12, 5]
    assert search(pubmed) == [31, 7, 12, 5]
    assert len(server.requests) == 2


def test_cache_key_ignores_the_caller(
    server: EUtils, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "sesame")
    search(make(server, tmp_path, email="a@b.c"))
    monkeypatch.setenv(KEY, "another")
    search(make(server, tmp_path, email="d@e.f"))
    assert len(server.requests) == 1


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
