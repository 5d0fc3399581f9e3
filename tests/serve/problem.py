"""Errors of the API as RFC 9457 has them."""

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
    """The sentence of a reply that is a whole problem."""
    assert reply.headers["content-type"] == "application/problem+json"
    told = reply.json()
    detail: str = told["detail"]
    for error in told.pop("errors", []):
        assert error["pointer"].startswith("#/"), error
        assert error["detail"].removesuffix("...") in detail, error
    assert told == problem(reply.status_code, detail)
    return detail
