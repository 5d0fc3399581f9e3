import json
import logging
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from starlette.testclient import TestClient

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from serve.http.door.note_requests import Meters
from tests.serve.http_server import serving
from tests.serve.problem import detail_of
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTION = {"question": "Does metformin activate AMPK?"}
ALICE, BOB = "a" * 32, "b" * 32


class NotingMeters(Meters):
    def __init__(self) -> None:
        self.requests: list[tuple[str, int]] = []
        self.questions: list[tuple[str, str, list[str], list[str]]] = []

    def request(self, route: str, status: int, seconds: float) -> None:
        self.requests.append((route, status))

    def question(
        self, kind: str, system: str, timings_ms: Mapping[str, float], degraded: Sequence[str]
    ) -> None:
        self.questions.append((kind, system, sorted(timings_ms), list(degraded)))


def client(service: SmallService, *overrides: str, meters: Meters | None = None) -> TestClient:
    settings = load_settings(overrides=[f"serve.http.{o}" for o in overrides]).serve
    api = create_api(service, settings, meters=meters)
    return TestClient(api, raise_server_exceptions=False)


@pytest.fixture
def with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"alice:{ALICE} bob:{BOB}")


@pytest.mark.usefixtures("with_keys")
def test_where_there_are_keys_one_is_needed_unless_a_route_is_open(service: SmallService) -> None:
    http = client(service)
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
def test_each_key_has_a_rate_of_its_own(service: SmallService) -> None:
    http = client(service, "per_minute=2")
    alice, bob = {"X-API-Key": ALICE}, {"X-API-Key": BOB}
    states = [http.post("/v1/search", json=QUESTION, headers=alice).status_code for _ in range(3)]
    assert states == [200, 200, 429]
    refused = http.post("/v1/search", json=QUESTION, headers=alice)
    assert 1 <= int(refused.headers["retry-after"]) <= 30
    assert "alice may ask 2 times a minute" in refused.json()["detail"]
    assert http.post("/v1/search", json=QUESTION, headers=bob).status_code == 200


def test_a_large_body_is_refused_whether_or_not_it_says_so(service: SmallService) -> None:
    http = client(service, "body_kb=1")
    large = json.dumps({"question": "x" * 2000}).encode()
    assert http.post("/v1/search", content=large).status_code == 413
    told_in_parts = http.post("/v1/search", content=iter([large[:500], large[500:]]))
    assert told_in_parts.status_code == 413
    assert "over 1,024 bytes" in told_in_parts.json()["detail"]


def test_a_body_that_does_not_come_is_not_waited_for(service: SmallService) -> None:
    settings = load_settings(overrides=["serve.http.body_s=0.2"]).serve
    with (
        serving(create_api(service, settings)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=10) as slow,
    ):
        slow.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
        reply = slow.recv(4096).decode()
    assert reply.startswith("HTTP/1.1 408")
    assert "did not arrive within 0.2 s" in reply


def test_a_request_keeps_its_id_and_gets_one_where_it_has_none(
    service: SmallService, caplog: pytest.LogCaptureFixture
) -> None:
    http = client(service)
    with caplog.at_level(logging.INFO, "citeray.requests"):
        http.get("/healthz", headers={"X-Request-ID": "job-7:3"})
        http.get("/healthz", headers={"X-Request-ID": "a b{}"})
        told = http.get("/healthz").headers["X-Request-ID"]
    lines: list[Any] = caplog.records
    ids = [line.id for line in lines if line.name == "citeray.requests"]
    assert (ids[0], ids[2]) == ("job-7:3", told)
    assert ids[1].isalnum()
    assert ids[1] != told


def test_the_log_has_a_line_a_request_and_its_words_only_where_asked_for(
    service: SmallService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "citeray.requests"):
        client(service).post("/v1/answer", json=QUESTION, headers={"X-Request-ID": "r1"})
        line: Any = caplog.records[-1]
        client(service, "log_questions=true").post("/v1/search", json=QUESTION)
    assert (line.id, line.route, line.status, line.kind) == ("r1", "/v1/answer", 200, "answer")
    assert (line.system, line.type, line.coverage) == ("citeray", "yesno", "2/2")
    assert line.timings_ms["retrieve"] >= 0
    assert "metformin" not in str(line.__dict__).lower()
    worded: Any = caplog.records[-1]
    assert worded.question == QUESTION["question"]


def test_requests_questions_and_losses_are_counted() -> None:
    meters = NotingMeters()
    http = client(SmallService(broken=("rerank",)), meters=meters)
    http.post("/v1/search", json=QUESTION)
    http.post("/v1/answer", json={**QUESTION, "stream": True})
    http.get("/v1/citations/7")
    http.get("/nowhere/at/all")
    assert meters.requests == [
        ("/v1/search", 200),
        ("/v1/answer", 200),
        ("/v1/citations/{pmid}", 404),
        ("unmatched", 404),
    ]
    kinds = [(kind, system) for kind, system, _, _ in meters.questions]
    assert kinds == [("search", "citeray"), ("answer", "citeray")]
    assert "write" in meters.questions[1][2]
    assert meters.questions[0][3] == ["rerank: failed, first-stage order kept"]


def test_pages_of_other_origins_may_not_ask_unless_they_are_named(service: SmallService) -> None:
    origin = {"Origin": "https://portal.example.org"}
    asks = {**origin, "Access-Control-Request-Method": "POST"}
    closed, named = client(service), client(service, 'cors_origins=["https://portal.example.org"]')
    assert "access-control-allow-origin" not in closed.get("/healthz", headers=origin).headers
    assert closed.options("/v1/search", headers=asks).status_code == 405
    assert named.options("/v1/search", headers=asks).status_code == 200
    allowed = named.get("/healthz", headers=origin).headers["access-control-allow-origin"]
    assert allowed == origin["Origin"]
    other = named.get("/healthz", headers={"Origin": "https://elsewhere.example.org"})
    assert "access-control-allow-origin" not in other.headers


def test_a_defect_is_a_plain_500_that_tells_nothing() -> None:
    service = SmallService()

    async def citation(pmid: int) -> None:
        raise ValueError("secret path /etc/x")

    service.citation = citation  # type: ignore[method-assign]
    reply = client(service).get("/v1/citations/1")
    assert reply.status_code == 500
    assert detail_of(reply) == "internal error; the server's log tells more"
