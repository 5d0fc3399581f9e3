"""What a caller is told where Serve's proxy has no reply of a gateway to pass on."""

from __future__ import annotations

import pytest
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from serve.http.door.lost_gateway import LostGateway


async def lost(scope: Scope, receive: Receive, send: Send) -> None:
    """As Serve's proxy does where the replica died: it sends nothing and raises nothing."""


def told(app: ASGIApp, path: str = "/v1/answer") -> tuple[int, str | None, str]:
    reply = TestClient(LostGateway(app)).post(path)
    return reply.status_code, reply.headers.get("retry-after"), reply.text


def test_a_request_whose_gateway_was_killed_may_be_sent_again() -> None:
    status, retry, said = told(lost)
    assert (status, retry) == (503, "5")
    assert "the process that worked on this request was lost" in said


def test_where_there_is_no_gateway_the_reply_says_when_to_come_back() -> None:
    status, retry, said = told(PlainTextResponse("deployment is unavailable", 503))
    assert (status, retry) == (503, "5")
    assert "no process of this server can take the request now" in said
    assert "deployment" not in said


@pytest.mark.parametrize(
    "reply",
    [
        PlainTextResponse("fine", 200),
        JSONResponse({"ready": False}, 503, headers={"X-Content-Type-Options": "nosniff"}),
        PlainTextResponse("full", 503, headers={"Retry-After": "2"}),
        PlainTextResponse("gone", 404),
    ],
)
def test_replies_of_a_gateway_are_passed_on(reply: PlainTextResponse | JSONResponse) -> None:
    status, _, said = told(reply)
    assert (status, said) == (reply.status_code, bytes(reply.body).decode())


def test_what_the_proxy_tells_of_itself_is_passed_on() -> None:
    assert told(PlainTextResponse("draining", 503), "/-/healthz") == (503, None, "draining")
