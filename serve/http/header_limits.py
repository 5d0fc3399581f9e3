"""Limits on request headers and on clients that read slowly, for Ray Serve's HTTP proxy.

The proxy parses HTTP with uvicorn and httptools. Neither limits the size of headers or the time
until they are complete, and ASGI middleware runs only after the headers are complete. Therefore
Ray's proxy callback, named by the environment variable PROXY_CALLBACK, calls `install` in each
proxy before its server is built. Every node of a cluster needs this variable; `citeray serve`
sets it for a Ray cluster that it starts.

This module relies on undocumented interfaces: Ray's PROXY_CALLBACK, and uvicorn's
`HTTP_PROTOCOLS` and `HttpToolsProtocol` with its `send_400_response`, `cycle` and
`ws_protocol_class`.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from starlette.middleware import Middleware
from uvicorn.config import HTTP_PROTOCOLS
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from serve.contracts.problem_forms import PROBLEM_JSON, problem_of
from serve.http.middleware.lost_gateway import LostGateway

PROXY_CALLBACK = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"
INSTALL = f"{__name__}:install"
HEADER_BYTES = 64 << 10
# The number is limited too, because even an empty header field takes memory in the parser.
HEADER_FIELDS = 256
# Default time limit for the headers, in seconds; the variable below overrides it.
HEADER_S = 20.0
HEADER_S_VARIABLE = "CITERAY_HEADER_S"
# A client must read at least READER_BYTES of a pending response within READER_S seconds.
READER_S = 60.0
READER_BYTES = 64 << 10

TOO_LARGE = f"the headers exceed {HEADER_BYTES:,} bytes; send fewer or shorter headers"
TOO_MANY = f"the request has over {HEADER_FIELDS} header fields; send fewer"
NO_UPGRADE = "this server does not upgrade connections; send the request without `Upgrade`"


def install() -> list[Middleware]:
    """Make every HTTP server that this process starts later use `LimitedHttpProtocol`.

    Return the middleware that the proxy adds, which replies if a gateway replica is lost. Raise
    ValueError if CITERAY_HEADER_S is not a positive number of seconds, and RuntimeError if uvicorn
    no longer chooses its parser through `HTTP_PROTOCOLS`.
    """
    header_s()
    if "auto" not in HTTP_PROTOCOLS:
        raise RuntimeError(
            "uvicorn.config.HTTP_PROTOCOLS has no entry `auto`: this uvicorn chooses its "
            "parser elsewhere; adapt serve/http/header_limits.py or pin the version of "
            "requirements/cpu.txt"
        )
    HTTP_PROTOCOLS["auto"] = f"{__name__}:{LimitedHttpProtocol.__name__}"
    return [Middleware(LostGateway)]


def header_s() -> float:
    """Return the header timeout in seconds, from the environment or the default."""
    given = os.environ.get(HEADER_S_VARIABLE) or str(HEADER_S)
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{HEADER_S_VARIABLE}={given}: not a positive number of seconds")
    return seconds


class RefusedHeadersError(Exception):
    """Raised in a parser callback to stop the parser when the headers are refused."""


class LimitedHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 connection with limits on the bytes, fields and time of headers.

    - `HEADER_BYTES` bounds the target and headers of a request, and any other input that the
      parser only buffers: blank lines, trailers, chunk extensions. One read (at most 256 KiB with
      uvloop) can exceed the limit before the check.
    - `header_s()` limits the time from the connection, or from the first byte of a later request,
      until the headers are complete. A connection that sends nothing is closed too.
    - WebSockets are not supported. A request without a body is answered as if it had no `Upgrade`
      (RFC 9110, 7.8). One with a body is refused, because httptools mistakes the body for data of
      the new protocol, or for the next request.
    - A client that reads less than READER_BYTES of its response in READER_S is disconnected.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ws_protocol_class = None
        self._header_s = header_s()
        self._timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self._awaiting_headers = True
        self._request_begun = False
        # Bytes fed to the parser since it last completed headers, a message or a body chunk.
        self._buffered = 0
        self._header_bytes = 0
        self._header_fields = 0
        self._refusal: tuple[int, str] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the header timer with the connection."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_timer()
        self._stop_reader_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the reader timer when the transport's write buffer is full."""
        super().pause_writing()
        if self._reader_timer is None:
            self._start_reader_timer()

    def resume_writing(self) -> None:
        """Stop the reader timer when the client has read most of the write buffer."""
        self._stop_reader_timer()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; reply 431 if it buffers more than HEADER_BYTES."""
        if self._awaiting_headers:
            self._start_timer()
        self._buffered += len(data)
        super().data_received(data)
        if self._buffered > HEADER_BYTES and not self.transport.is_closing():
            self._refuse(431, TOO_LARGE)

    def on_message_begin(self) -> None:
        """Reset the counters for a new request, and start the timer if it is not running."""
        super().on_message_begin()
        self._header_bytes = self._header_fields = 0
        self._request_begun = True
        self._start_timer()

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the request target; above the limit, stop the parser and reply 431."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the header field and its bytes; above a limit, stop the parser and reply 431."""
        self._header_fields += 1
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the timer; reply 400 to an upgrade request with a body."""
        self._stop_timer()
        self._awaiting_headers = self._request_begun = False
        self._buffered = 0
        if self.parser.should_upgrade() and self._has_body():
            self._stop_parser(400, NO_UPGRADE)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a body chunk, which does not count towards the header limits."""
        self._buffered = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect the headers of the next request."""
        self._awaiting_headers = True
        self._buffered = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Reply to input that stopped the parser: it is malformed, or exceeds one of the limits."""
        self._refuse(*self._refusal or (400, msg))

    def _has_body(self) -> bool:
        sizes = dict(self.headers)
        return b"transfer-encoding" in sizes or sizes.get(b"content-length", b"0") != b"0"

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > HEADER_BYTES:
            self._stop_parser(431, TOO_LARGE)
        if self._header_fields > HEADER_FIELDS:
            self._stop_parser(431, TOO_MANY)

    def _stop_parser(self, status: int, message: str) -> None:
        """Raise in a parser callback; uvicorn then calls `send_400_response`, which replies."""
        self._refusal = (status, message)
        raise RefusedHeadersError(message)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self._header_s, self._on_timeout)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_reader_timer(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._reader_timer = self.loop.call_later(READER_S, self._check_reader, unread)

    def _check_reader(self, unread: int) -> None:
        """Abort the connection if the client has read too little since `unread` bytes were left."""
        if unread - self.transport.get_write_buffer_size() < READER_BYTES:
            self._reader_timer = None
            self.transport.abort()
        else:
            self._start_reader_timer()

    def _stop_reader_timer(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

    def _on_timeout(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            # A pipelined request waits for this response, and uvicorn may have paused reading.
            self._start_timer()
        elif self._request_begun:
            self._refuse(408, f"the headers did not arrive within {self._header_s:g} s")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Reply with a problem (RFC 9457) and close the connection."""
        body = json.dumps(problem_of(status, message)).encode()
        lines = [
            STATUS_LINE[status],
            b"content-type: %s\r\n" % PROBLEM_JSON.encode(),
            b"content-length: %d\r\n" % len(body),
            b"connection: close\r\n\r\n",
            body,
        ]
        self.transport.write(b"".join(lines))
        self.transport.close()
