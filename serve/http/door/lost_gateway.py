"""What Serve's proxy replies where the gateway that worked on a request was lost.

Of its own the proxy says nothing then, and the server under it a bare 500; where no gateway can
be had it says so without `Retry-After`. Ray's proxy callback puts this middleware in each proxy
(`serve.http.header_limits.install`).
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.http.problem_forms import busy_problem

RETRY_AFTER_S = 5
LOST = "the process that worked on this request was lost; send it again in a moment"
ABSENT = "no process of this server can take the request now; send it again in a moment"
# A gateway's own replies carry it, the proxy's do not.
OURS = b"x-content-type-options"
# Paths at which the proxy tells how it is itself.
PROXYS_OWN = "/-/"


class LostGateway:
    """ASGI middleware: 503 with `Retry-After` in place of no reply, and of the proxy's own 503.

    A reply that has begun is cut off, which the caller sees.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and reply where nothing behind does."""
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
