"""Responses of Ray Serve's proxy when a gateway replica is lost or unavailable.

Without this middleware the proxy sends no response if the replica is lost during a request, so
that its HTTP server replies a bare 500, and it replies 503 without `Retry-After` if no replica is
available. `serve.http.header_limits.install` adds the middleware to each proxy.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.contracts.problem_forms import busy_problem

RETRY_AFTER_S = 5
LOST = "the process that worked on this request was lost; send it again in a moment"
ABSENT = "no process of this server can take the request now; send it again in a moment"
# Header of every gateway response, which the proxy's own responses lack.
OURS = b"x-content-type-options"
# Paths of the proxy's own health and route endpoints.
PROXYS_OWN = "/-/"


class LostGateway:
    """ASGI middleware that replaces a missing response and the proxy's 503 with a retryable 503.

    A response that has begun is truncated, which the client can detect.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and reply 503 if the application does not respond."""
        if scope["type"] != "http" or scope["path"].startswith(PROXYS_OWN):
            await self._app(scope, receive, send)
            return
        begun = replaced = False

        async def send_or_replace(message: Message) -> None:
            nonlocal begun, replaced
            if message["type"] == "http.response.start" and not begun:
                begun = True
                named = {name.lower() for name, _ in message.get("headers", ())}
                if message["status"] == 503 and not named & {OURS, b"retry-after"}:
                    replaced = True
                    await _refuse(ABSENT, scope, receive, send)
            if not replaced:
                await send(message)

        await self._app(scope, receive, send_or_replace)
        if not begun:
            await _refuse(LOST, scope, receive, send)


async def _refuse(sentence: str, scope: Scope, receive: Receive, send: Send) -> None:
    await busy_problem(503, sentence, RETRY_AFTER_S)(scope, receive, send)
