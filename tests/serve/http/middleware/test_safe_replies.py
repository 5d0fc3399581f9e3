"""Security headers of every response, and headers that clients cannot forge."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.serve.api import client_of
from tests.serve.service import SmallService

QUESTION = {"question": "Does metformin activate AMPK?"}


def test_every_response_has_security_headers(http: TestClient) -> None:
    replies = [
        *(http.get(path) for path in ("/", "/docs", "/static/page.css", "/healthz", "/metrics")),
        *(http.get(path) for path in ("/nowhere", "/v1/citations/1", "/v1/citations/x")),
        http.post("/v1/search", json=QUESTION),
        http.post("/v1/answer", json={**QUESTION, "stream": True}),
        http.post("/v1/search", json={}),
        http.get("/", headers={"Host": "rebound.example"}),
    ]
    for reply in replies:
        headers = reply.headers
        policy = headers["content-security-policy"]
        for directive in ("default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"):
            assert directive in policy, reply.url
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        path = reply.url.path
        files = path in ("/", "/docs") or path.startswith("/static/")
        kept = "no-cache" if files and reply.status_code == 200 else "no-store"
        assert headers["cache-control"] == kept, reply.url


def test_trace_is_refused(http: TestClient) -> None:
    for path in ("/", "/v1/answer", "/healthz"):
        assert http.request("TRACE", path, headers={"X-Secret": "s"}).status_code == 405


def test_forwarded_headers_are_ignored(http: TestClient) -> None:
    forwarded = {"X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
    rebound = {"Host": "rebound.example", **forwarded}
    assert http.get("/healthz", headers=rebound).status_code == 403
    own = {"X-Forwarded-Host": "rebound.example", "X-Forwarded-For": "10.0.0.1"}
    assert http.get("/healthz", headers=own).status_code == 200


def test_keys_are_not_logged(
    service: SmallService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"alice:{'a' * 32}")
    http = client_of(service)
    with caplog.at_level(logging.INFO, "citeray.requests"):
        http.post("/v1/search", json=QUESTION, headers={"X-API-Key": "wrong" * 7})
        http.post("/v1/search", json=QUESTION, headers={"X-API-Key": "a" * 32})
    refused, taken = [line for line in caplog.records if line.name == "citeray.requests"]
    lines: list[Any] = [refused, taken]
    assert [line.status for line in lines] == [401, 200]
    assert lines[1].key == "alice"
    assert "wrong" not in str(vars(refused))
    assert "a" * 32 not in str(vars(taken))
