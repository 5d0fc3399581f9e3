"""Send raw bytes as HTTP requests."""

from __future__ import annotations

import contextlib
import re
import socket
from http.client import HTTPException, HTTPResponse

QUESTION = b'{"question": "Does metformin activate AMPK?"}'
# Seconds of silence after which a server is taken to send nothing more.
QUIET_S = 0.25
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


def head(method: bytes, path: bytes, more: bytes = b"") -> bytes:
    """Return the head of a request; `more` are header lines."""
    return method + b" " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + more + b"\r\n"


def posted(
    body: bytes, path: bytes = b"/v1/search", kind: bytes = b"application/json", more: bytes = b""
) -> bytes:
    """Return a complete request with its length; `more` are header lines."""
    size = b"Content-Length: %d\r\n" % len(body)
    return head(b"POST", path, b"Content-Type: " + kind + b"\r\n" + size + more) + body


def ask(port: int, request: bytes, patience_s: float = 10.0) -> tuple[int, bytes]:
    """Return (status, body) of the reply; the status is 0 if none arrives within `patience_s` or
    before the connection closes.
    """
    with _sent(port, request, patience_s) as wire:
        reply = HTTPResponse(wire, method="GET")
        try:
            reply.begin()
            return reply.status, reply.read()
        except (OSError, HTTPException):
            return 0, b""


def statuses(port: int, request: bytes) -> list[int]:
    """Return the statuses of all replies to bytes that may be several requests."""
    said = b""
    with _sent(port, request, QUIET_S) as wire, contextlib.suppress(OSError):
        while more := wire.recv(65536):
            said += more
    return [int(status) for status in STATUS.findall(said)]


def _sent(port: int, request: bytes, patience_s: float) -> socket.socket:
    wire = socket.create_connection(("127.0.0.1", port), timeout=patience_s)
    # The server may refuse the request before all of it is sent; its reply is read anyway.
    with contextlib.suppress(OSError):
        wire.sendall(request)
    return wire
