"""Limits on headers and slow readers, on uvicorn without Ray; for Ray see tests/end_to_end."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from itertools import product

import pytest
from fastapi import FastAPI, Request, Response
from uvicorn.config import HTTP_PROTOCOLS

from serve.http.header_limits import (
    HEADER_BYTES,
    HEADER_S_VARIABLE,
    INSTALL,
    PROXY_CALLBACK,
    install,
)
from tests.hostile.raw_http import ask, head, statuses
from tests.serve.http_server import serving

pytestmark = pytest.mark.slow

CHUNKED = head(b"POST", b"/", b"Transfer-Encoding: chunked\r\n")
FLOOD = b"a" * (HEADER_BYTES + 1024)
# Several reads of at most 256 KiB: the first may begin with a body chunk and is not counted.
READS = b"a" * (1 << 20)
# More than the kernel buffers for a slow reader.
LARGE = b"a" * (32 << 20)
IDLE = 1000


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[int]:
    """Port of a server with the limits, which are installed for the duration of the test."""
    monkeypatch.setitem(HTTP_PROTOCOLS, "auto", HTTP_PROTOCOLS["auto"])
    install()
    monkeypatch.setenv(HEADER_S_VARIABLE, getattr(request, "param", "1"))
    api = FastAPI()

    @api.post("/")
    async def count(request: Request) -> int:
        return len(await request.body())

    @api.get("/large")
    async def large() -> Response:
        return Response(LARGE)

    with serving(api) as port:
        yield port


def replies(port: int, sent: bytes) -> bytes:
    """Return all bytes until the server closes the connection."""
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        # The server may refuse and close before everything is sent.
        with contextlib.suppress(ConnectionError):
            wire.sendall(sent)
        with contextlib.suppress(ConnectionError):
            while more := wire.recv(65536):
                said += more
    return said


@pytest.mark.model
def test_ray_supports_the_proxy_callback() -> None:
    from ray._common.utils import import_attr
    from ray.serve._private import constants

    assert hasattr(constants, PROXY_CALLBACK)
    assert import_attr(INSTALL) is install


def test_install_refuses_another_uvicorn_and_an_invalid_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for given in ("0", "-1", "soon", "inf", "nan"):
        monkeypatch.setenv(HEADER_S_VARIABLE, given)
        with pytest.raises(ValueError, match=f"{HEADER_S_VARIABLE}={given}: not a positive number"):
            install()
    monkeypatch.delenv(HEADER_S_VARIABLE)
    monkeypatch.delitem(HTTP_PROTOCOLS, "auto")
    with pytest.raises(RuntimeError, match="no entry `auto`"):
        install()


def test_headers_trailers_and_extensions_are_limited(port: int, subtests: pytest.Subtests) -> None:
    for name, sent in {
        "target": b"GET /" + FLOOD,
        "name": b"GET / HTTP/1.1\r\n" + FLOOD,
        "value": b"GET / HTTP/1.1\r\nX-A: " + FLOOD,
        "whole value": head(b"GET", b"/", b"X-A: " + FLOOD + b"\r\n"),
        "blank lines": b"\r\n" * HEADER_BYTES,
    }.items():
        with subtests.test(name):
            assert replies(port, sent).startswith(b"HTTP/1.1 431 ")
    for name, flood in {"trailer": b"0\r\nX-A: " + READS, "extension": b"1;" + READS}.items():
        with subtests.test(name):
            assert b"HTTP/1.1 431 " in replies(port, CHUNKED + b"1\r\na\r\n" + flood)


def test_many_small_chunks_are_not_counted_as_headers(port: int) -> None:
    body = b"1\r\na\r\n" * HEADER_BYTES + b"0\r\n\r\n"
    assert ask(port, CHUNKED + body, patience_s=30) == (200, b"65536")


def test_upgrade_request_with_a_body_is_refused(port: int) -> None:
    upgrade = b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"
    length = b"Content-Length: 1\r\n\r\na"
    chunked = b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
    for protocol, framing in product((b"websocket", b"h2c"), (length, chunked)):
        assert statuses(port, upgrade % protocol + framing + head(b"POST", b"/")) == [400]


# A busy machine may take a second until the first byte is sent.
@pytest.mark.parametrize("port", ["30"], indirect=True)
def test_pipelined_requests_are_answered(port: int) -> None:
    one = head(b"POST", b"/", b"Content-Length: 1\r\n") + b"a"
    last = head(b"POST", b"/", b"Content-Length: 1\r\nConnection: close\r\n") + b"a"
    assert statuses(port, one * 2 + last) == [200] * 3


def test_second_request_of_a_connection_times_out(port: int) -> None:
    one = head(b"POST", b"/", b"Content-Length: 1\r\n") + b"a"
    said = replies(port, one + b"POST / HTTP/1.1\r\nX-A: ")
    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in said


@pytest.mark.parametrize("opened", [b"", b"GET / HTTP/1.1\r\nX-A: "], ids=["silent", "half"])
def test_idle_connections_are_closed_and_do_not_block_others(port: int, opened: bytes) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4 * IDLE:
        pytest.skip(f"this process may open {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * IDLE), hard))
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        wires = []
        for _ in range(IDLE):
            wire = socket.create_connection(("127.0.0.1", port), timeout=30)
            wires.append(stack.enter_context(wire))
            wire.sendall(opened)
        one = head(b"POST", b"/", b"Content-Length: 1\r\n") + b"a"
        assert ask(port, one, patience_s=30) == (200, b"1")
        ends = [wire.recv(64) for wire in wires]
    assert {end[:13] for end in ends} == {b"HTTP/1.1 408 " if opened else b""}


def read_large(port: int, wait_s: float, pauses: int, pause_s: float) -> int:
    """Request the large response, read it after `wait_s` with pauses, and return its size."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        wire.sendall(head(b"GET", b"/large", b"Connection: close\r\n"))
        time.sleep(wait_s)
        read = 0
        with contextlib.suppress(ConnectionError):
            while more := wire.recv(1 << 20):
                read += len(more)
                pauses -= 1
                time.sleep(pause_s if pauses >= 0 else 0)
    return read


def test_slow_reader_gets_the_whole_response_and_a_stalled_one_is_disconnected(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serve.http.header_limits.READER_S", 0.5)
    assert read_large(port, wait_s=1.5, pauses=0, pause_s=0) < len(LARGE)
    monkeypatch.setattr("serve.http.header_limits.READER_S", 2)
    assert read_large(port, wait_s=0, pauses=25, pause_s=0.15) > len(LARGE)
