from __future__ import annotations

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from serve.http.middleware.lost_gateway import LostGateway


async def lost(scope: Scope, receive: Receive, send: Send) -> None:
    """Send nothing and raise nothing, like Serve's proxy after its replica has died."""


def reply_of(app: ASGIApp, path: str = "/v1/answer") -> tuple[int, str | None, str]:
    reply = TestClient(LostGateway(app)).post(path)
    return reply.status_code, reply.headers.get("retry-after"), reply.text


def test_missing_response_becomes_a_retryable_503() -> None:
    none = PlainTextResponse("deployment is unavailable", 503)
    for app, words in (
        (lost, "the process that worked on this request was lost"),
        (none, "no process of this server can take the request now"),
    ):
        status, retry, said = reply_of(app)
        assert (status, retry) == (503, "5")
        assert words in said
        assert "deployment" not in said


def test_other_responses_are_passed_on() -> None:
    for reply in (
        PlainTextResponse("fine", 200),
        JSONResponse({"ready": False}, 503, headers={"X-Content-Type-Options": "nosniff"}),
        PlainTextResponse("full", 503, headers={"Retry-After": "2"}),
        PlainTextResponse("gone", 404),
    ):
        status, _, said = reply_of(reply)
        assert (status, said) == (reply.status_code, bytes(reply.body).decode())
    assert reply_of(PlainTextResponse("draining", 503), "/-/healthz") == (503, None, "draining")
