"""Errors of the OpenAI-compatible routes: `{"error": {message, type, param, code}}`.

Errors of the middleware (no key, too busy, too large) are converted too, because OpenAI's clients
cannot show errors in another format.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.contracts.request_forms import explain_problems

CHAT = "/v1/chat/completions"
MODELS = "/v1/models"


def openai_error(
    status: int, message: str, code: str | None = None, param: str | None = None
) -> JSONResponse:
    """Return an error response in OpenAI's format."""
    headers = {"Retry-After": "5"} if status == 503 else None
    return JSONResponse(_formed(status, message, code, param), status, headers=headers)


def _formed(
    status: int, message: str, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    kind = "rate_limit_error" if status == 429 else kind
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def explain_chat_problems(problems: Sequence[Any]) -> JSONResponse:
    """Return the response to an invalid request; its status is 400, as in OpenAI's API."""
    keys = [str(p) for p in problems[0]["loc"] if p != "body"]
    return openai_error(400, explain_problems(problems), None, ".".join(keys) or None)


class OpenAIErrors:
    """ASGI middleware that converts problems on the OpenAI routes to OpenAI's format."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; on the OpenAI routes, buffer and convert error responses."""
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path == CHAT or path.startswith(MODELS)):
            await self._app(scope, receive, send)
            return
        held: list[Message] = []

        async def send_formed(message: Message) -> None:
            if held or (message["type"] == "http.response.start" and message["status"] >= 400):
                held.append(message)
                if message["type"] == "http.response.start" or message.get("more_body"):
                    return
                await _send_error(held, send)
            else:
                await send(message)

        await self._app(scope, receive, send_formed)


async def _send_error(held: Sequence[Message], send: Send) -> None:
    """Convert and send an error response; `held` are all of its ASGI messages."""
    start, *parts = held
    body = b"".join(part.get("body", b"") for part in parts)
    try:
        said = json.loads(body)["detail"]
    except (ValueError, KeyError, TypeError):
        said = None
    if isinstance(said, str):
        body = json.dumps(_formed(start["status"], said)).encode()
        headers = MutableHeaders(scope=start)
        headers["content-type"], headers["content-length"] = "application/json", str(len(body))
    await send(start)
    await send({"type": "http.response.body", "body": body})
