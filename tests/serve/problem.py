"""Errors of the API in the form of RFC 9457."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import httpx


def problem(status: int, detail: str) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }


def detail_of(reply: httpx.Response) -> str:
    """Return the message of a reply, after a check that the reply is a complete problem."""
    assert reply.headers["content-type"] == "application/problem+json"
    body = reply.json()
    detail: str = body["detail"]
    for error in body.pop("errors", []):
        assert error["pointer"].startswith("#/"), error
        assert error["detail"].removesuffix("...") in detail, error
    assert body == problem(reply.status_code, detail)
    return detail


def assert_refused(reply: httpx.Response, said: str, status: int = 422) -> None:
    detail = detail_of(reply)
    assert (reply.status_code, said in detail) == (status, True), detail
    assert "\n" not in detail
    assert len(detail) < 500
