"""Middleware that checks every request before its route, and logs and counts it afterwards.

request ─► id, log, metrics ─► headers ─► Host, Origin ─► key, rate ─► body ─► slot ─► route

It is plain ASGI middleware, so that a client disconnect cancels the work.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import MutableMapping, Sequence
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cluster.errors import RefusedError
from cluster.settings.stages.serving import HttpSettings
from serve.contracts.problem_forms import busy_problem
from serve.http.header_limits import HEADER_BYTES, TOO_LARGE
from serve.http.middleware.admission import Admission
from serve.http.middleware.api_keys import Rates, given_key, owner, read_keys
from serve.http.middleware.check_caller import explain_host, explain_origin
from serve.http.middleware.read_body import CallerGoneError, read_body, replay
from serve.http.middleware.request_log import NOTES, Meters, log_request, request_id_of

# Paths that need no key: probes, documentation, and the page in which users enter their key.
OPEN = frozenset({"/", "/healthz", "/readyz", "/docs", "/openapi.json"})
OPEN_FOLDERS = ("/static/",)
# Paths with expensive work, which need a slot of the admission control.
WORK = frozenset(
    {
        *("/v1/answer", "/v1/search", "/v1/chat/completions", "/mcp"),
        *("/v1/answers/document", "/v1/watches", "/v1/strategy"),
        *("/v1/search/boolean", "/v1/search/boolean/export"),
    }
)
# GET routes that search or read many citations.
GET_WORK = re.compile(
    r"/v1/(?:citations|citations/[^/]+/related|references|batches/[^/]+/references"
    r"|answers/[^/]+/changes)"
)
ANSWERS, REPEATS = "/v1/answers/", ("/replay", "/strategy")
BATCHES = "/v1/batches"
BATCH_BYTES = 10 << 20
UNMATCHED = "unmatched"
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    # The page's files set their own policy; no other response should render as a page.
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
}
# Close the connection if the body is unread: it would be parsed as the next request.
CLOSE = {"Connection": "close"}
REFUSAL_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 408: CLOSE, 413: CLOSE, 431: CLOSE}


class Guard:
    """ASGI middleware around the whole application; `hosts` are the allowed `Host` names."""

    def __init__(
        self,
        app: ASGIApp,
        settings: HttpSettings,
        admission: Admission,
        meters: Meters,
        hosts: Sequence[str],
    ) -> None:
        self._app = app
        self._settings = settings
        self._hosts = hosts
        self._keys = read_keys(settings.api_keys_env)
        self._rates = Rates(settings.per_minute)
        self._admission = admission
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit or refuse the request, then log and count it, even if the client disconnects."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.monotonic()
        headers = Headers(scope=scope)
        notes: dict[str, Any] = {"id": request_id_of(headers), "method": scope["method"]}
        NOTES.set(notes)
        # 499 is nginx' status for a client that disconnected before the response.
        status = [499]

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                add_headers(message, notes["id"], named="x-request-id" in headers)
            await send(message)

        try:
            await self._admit(scope, headers, notes, receive, send_noted)
        except Exception:
            status[0] = 500
            raise
        finally:
            route = route_of(scope)
            self._meters.request(route, status[0], time.monotonic() - begun)
            self._meters.load(self._admission.running, self._admission.waiting)
            log_request(notes, route, status[0], begun)

    async def _admit(
        self,
        scope: Scope,
        headers: Headers,
        notes: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
    ) -> None:
        try:
            check_size(headers)
            self._check_caller(scope["method"], headers)
            self._check_key(scope["path"], headers, notes)
            limit = BATCH_BYTES if scope["path"] == BATCHES else self._settings.body_kb << 10
            body = await read_body(receive, headers, limit, self._settings.body_s)
            receive = replay(body, receive)
            if not is_work(scope["method"], scope["path"]):
                await self._app(scope, receive, send)
                return
            async with self._admission.turn():
                await self._app(scope, receive, send)
        except CallerGoneError:
            return
        except RefusedError as error:
            refusal = busy_problem(error.status, error.message, error.retry_after_s)
            refusal.headers.update(REFUSAL_HEADERS.get(error.status, {}))
            await refusal(scope, receive, send)

    def _check_caller(self, method: str, headers: Headers) -> None:
        """Raise RefusedError if `Host` or `Origin` is not allowed."""
        origins = self._settings.cors_origins
        why = explain_host(headers, self._hosts) or explain_origin(method, headers, origins)
        if why:
            raise RefusedError(why, 403)

    def _check_key(self, path: str, headers: Headers, notes: MutableMapping[str, Any]) -> None:
        if not self._keys or path in OPEN or path.startswith(OPEN_FOLDERS):
            return
        name = owner(given_key(headers), self._keys)
        if name is None:
            raise RefusedError(
                "no valid API key; send one as `Authorization: Bearer KEY` or `X-API-Key: KEY`", 401
            )
        notes["key"] = name
        if wait := self._rates.wait_s(name):
            retry = math.ceil(wait)
            limit = self._settings.per_minute
            said = f"{name} may send {limit} requests a minute; retry in {retry} s"
            raise RefusedError(said, 429, retry)


def check_size(headers: Headers) -> None:
    """Raise RefusedError for headers over `HEADER_BYTES`.

    Ray Serve's proxy refuses them earlier (`header_limits`); other HTTP servers may not.
    """
    if sum(len(name) + len(value) for name, value in headers.raw) > HEADER_BYTES:
        raise RefusedError(TOO_LARGE, 431)


def is_work(method: str, path: str) -> bool:
    """Return True if a request needs a slot of the admission control."""
    if method != "POST":
        return GET_WORK.fullmatch(path) is not None
    return path in WORK or (path.startswith(ANSWERS) and path.endswith(REPEATS))


def route_of(scope: Scope) -> str:
    """Return the path template of the matched route, such as `/v1/citations/{pmid}`."""
    route = scope.get("route")
    return str(getattr(route, "path", UNMATCHED))


def add_headers(message: Message, request_id: str, *, named: bool) -> None:
    """Add the security headers, and `X-Request-ID` unless Ray Serve has assigned an id (`named`).

    Ray Serve assigns an id to each request without one, and returns it to the client itself.
    """
    headers = MutableHeaders(scope=message)
    if not named:
        headers["X-Request-ID"] = request_id
    for name, value in SAFE_HEADERS.items():
        headers.setdefault(name, value)
