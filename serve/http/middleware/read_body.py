"""Read the whole body of a request before its route runs, within a size and time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import Message, Receive

from cluster.errors import CiteRayError, RefusedError


class CallerGoneError(CiteRayError):
    """The client has disconnected."""


async def read_body(
    receive: Receive, headers: Mapping[str, str], limit: int, seconds: float
) -> bytes:
    """Return the body.

    Raise RefusedError if it exceeds `limit` bytes or takes longer than `seconds`, and
    CallerGoneError if the client disconnects.
    """
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise CallerGoneError("the client disconnected")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise _too_large(limit)
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise RefusedError(f"the body did not arrive within {seconds:g} s", 408) from None


def _too_large(limit: int) -> RefusedError:
    return RefusedError(f"the body is over {limit:,} bytes; split the request", 413)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI `receive` that delivers `body`, and then the messages of `receive`."""
    unread = [body]

    async def receive_again() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return receive_again
