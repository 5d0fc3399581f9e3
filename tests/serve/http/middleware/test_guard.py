import json
import logging
import socket
from typing import Any
from unittest.mock import Mock

import pytest

from serve.http.middleware.guard import is_work
from serve.http.middleware.request_log import Meters
from tests.serve.api import client_of, make_api
from tests.serve.http_server import serving
from tests.serve.problem import detail_of
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTION = {"question": "Does metformin activate AMPK?"}
ALICE, BOB = "a" * 32, "b" * 32


@pytest.fixture
def with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"alice:{ALICE} bob:{BOB}")


@pytest.mark.usefixtures("with_keys")
def test_configured_keys_are_required_except_on_open_routes(service: SmallService) -> None:
    http = client_of(service)
    refused = http.post("/v1/search", json=QUESTION)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "no valid API key" in refused.json()["detail"]
    for headers in ({"Authorization": f"Bearer {ALICE}"}, {"X-API-Key": BOB}):
        assert http.post("/v1/search", json=QUESTION, headers=headers).status_code == 200
    wrong = {"Authorization": f"Bearer {ALICE[:-1]}"}
    assert http.post("/v1/search", json=QUESTION, headers=wrong).status_code == 401
    for path in ("/healthz", "/readyz"):
        assert http.get(path).status_code == 200
    for path in ("/metrics", "/v1/citations/1", "/nowhere", "/static", "/healthz/"):
        assert http.get(path, follow_redirects=False).status_code == 401, path


@pytest.mark.usefixtures("with_keys")
def test_each_key_has_its_own_rate_limit(service: SmallService) -> None:
    http = client_of(service, "http.per_minute=2")
    alice, bob = {"X-API-Key": ALICE}, {"X-API-Key": BOB}
    states = [http.post("/v1/search", json=QUESTION, headers=alice).status_code for _ in range(3)]
    assert states == [200, 200, 429]
    refused = http.post("/v1/search", json=QUESTION, headers=alice)
    assert 1 <= int(refused.headers["retry-after"]) <= 30
    assert "alice may send 2 requests a minute" in refused.json()["detail"]
    assert http.post("/v1/search", json=QUESTION, headers=bob).status_code == 200


def test_large_body_is_refused_with_and_without_content_length(service: SmallService) -> None:
    http = client_of(service, "http.body_kb=1")
    large = json.dumps({"question": "x" * 2000}).encode()
    assert http.post("/v1/search", content=large).status_code == 413
    told_in_parts = http.post("/v1/search", content=iter([large[:500], large[500:]]))
    assert told_in_parts.status_code == 413
    assert "over 1,024 bytes" in told_in_parts.json()["detail"]


def test_slow_body_times_out(service: SmallService) -> None:
    with (
        serving(make_api(service, "http.body_s=0.2")) as port,
        socket.create_connection(("127.0.0.1", port), timeout=10) as slow,
    ):
        slow.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
        reply = slow.recv(4096).decode()
    assert reply.startswith("HTTP/1.1 408")
    assert "did not arrive within 0.2 s" in reply


def test_request_log_has_an_id_and_the_question_only_if_enabled(
    service: SmallService, caplog: pytest.LogCaptureFixture
) -> None:
    http = client_of(service)
    with caplog.at_level(logging.INFO, "citeray.requests"):
        http.get("/healthz", headers={"X-Request-ID": "a b{}"})
        logged_id = http.get("/healthz").headers["X-Request-ID"]
        http.post("/v1/answer", json=QUESTION, headers={"X-Request-ID": "r1"})
        lines: list[Any] = [line for line in caplog.records if line.name == "citeray.requests"]
        invalid, absent, line = lines
        client_of(service, "http.log_questions=true").post("/v1/search", json=QUESTION)
    assert (absent.id, invalid.id.isalnum(), invalid.id == logged_id) == (logged_id, True, False)
    assert (line.id, line.route, line.status, line.kind) == ("r1", "/v1/answer", 200, "answer")
    assert (line.system, line.type, line.coverage) == ("citeray", "yesno", "2/2")
    assert line.timings_ms["retrieve"] >= 0
    assert "metformin" not in str(line.__dict__).lower()
    worded: Any = caplog.records[-1]
    assert worded.question == QUESTION["question"]


def test_metrics_count_requests_questions_and_losses() -> None:
    meters = Mock(spec=Meters)
    http = client_of(SmallService(broken=("rerank",)), meters=meters)
    http.post("/v1/search", json=QUESTION)
    http.post("/v1/answer", json={**QUESTION, "stream": True})
    http.get("/v1/citations/7")
    http.get("/nowhere/at/all")
    assert [call.args[:2] for call in meters.request.call_args_list] == [
        ("/v1/search", 200),
        ("/v1/answer", 200),
        ("/v1/citations/{pmid}", 404),
        ("unmatched", 404),
    ]
    searched, answered = (call.args for call in meters.question.call_args_list)
    assert (searched[:2], answered[:2]) == (("search", "citeray"), ("answer", "citeray"))
    assert "write" in answered[2]
    assert list(searched[3]) == ["rerank: failed, first-stage order kept"]


def test_cors_allows_only_configured_origins(service: SmallService) -> None:
    origin = {"Origin": "https://portal.example.org"}
    asks = {**origin, "Access-Control-Request-Method": "POST"}
    allows = "access-control-allow-origin"
    closed = client_of(service)
    named = client_of(service, f'http.cors_origins=["{origin["Origin"]}"]')
    assert allows not in closed.get("/healthz", headers=origin).headers
    assert closed.options("/v1/search", headers=asks).status_code == 405
    assert named.options("/v1/search", headers=asks).status_code == 200
    assert named.get("/healthz", headers=origin).headers[allows] == origin["Origin"]
    other = named.get("/healthz", headers={"Origin": "https://elsewhere.example.org"})
    assert allows not in other.headers


def test_unexpected_error_is_a_500_without_details() -> None:
    service = SmallService()

    async def citation(pmid: int) -> None:
        raise ValueError("secret path /etc/x")

    service.citation = citation  # type: ignore[method-assign]
    reply = client_of(service).get("/v1/citations/1")
    assert reply.status_code == 500
    assert detail_of(reply) == "internal error; see the server's log"


def test_requests_that_search_or_answer_need_an_admission_slot() -> None:
    where = f"/v1/answers/{'0' * 32}"
    work = [("POST", f"{where}/replay"), ("POST", "/v1/watches"), ("GET", "/v1/citations")]
    work += [("GET", f"/v1/{path}") for path in ("batches/b1/references", "citations/1/related")]
    work.append(("GET", "/v1/answers/a1/changes"))
    others = [("GET", path) for path in ("/v1/watches", "/v1/citations/1", where)]
    assert [request for request in work if not is_work(*request)] == []
    assert [request for request in others if is_work(*request)] == []
