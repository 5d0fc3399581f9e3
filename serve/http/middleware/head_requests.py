"""Support HEAD on every path that has GET, as RFC 9110, section 9.3.2, requires."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadAsGet:
    """ASGI middleware that handles HEAD as GET and drops the response body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and copy the matched route into `scope` for outer middleware."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        # Copy `scope`: if the HTTP server saw GET, it would expect the body to be sent.
        asked = {**scope, "method": "GET"}

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            await self._app(asked, receive, send_head)
        finally:
            scope.update({name: asked[name] for name in ("route",) if name in asked})
