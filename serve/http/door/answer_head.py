"""HEAD on every path that answers GET, as HTTP asks for (RFC 9110, 9.3.2)."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadAsGet:
    """ASGI middleware that has HEAD answered as GET is, and leaves out the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; the route taken is told to the middleware outside in `scope`."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        # The server must go on seeing HEAD: it counts no bytes of a body then.
        asked = {**scope, "method": "GET"}

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            await self._app(asked, receive, send_head)
        finally:
            scope.update({name: asked[name] for name in ("route",) if name in asked})
