"""The protocol that limits headers, on a uvicorn of its own; behind Ray in tests/end_to_end."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Iterator

import pytest
import uvicorn
from fastapi import FastAPI, Request, Response
from uvicorn.config import HTTP_PROTOCOLS

from serve.http.header_limits import (
    HEADER_BYTES,
    HEADER_S_VARIABLE,
    INSTALL,
    PROXY_CALLBACK,
    LimitedHttpProtocol,
    install,
)
from tests.hostile.raw_http import ask, head, statuses
from tests.serve.http_server import serving

pytestmark = pytest.mark.slow

CHUNKED = head(b"POST", b"/", b"Transfer-Encoding: chunked\r\n")
FLOOD = b"a" * (HEADER_BYTES + 1024)
# One read of at most 256 KiB may begin with a piece of the body, and is not counted.
READS = b"a" * (1 << 20)
# More than the kernel keeps for a reader that is slow.
LARGE = b"a" * (32 << 20)
IDLE = 1000


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits, in this test's process for the length of the test."""
    monkeypatch.setitem(HTTP_PROTOCOLS, "auto", HTTP_PROTOCOLS["auto"])
    install()


@pytest.fixture
def port(
    installed: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[int]:
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
    """What comes until the server closes the connection."""
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        # A server that refuses before the end is heard all the same.
        with contextlib.suppress(ConnectionError):
            wire.sendall(sent)
        with contextlib.suppress(ConnectionError):
            while more := wire.recv(65536):
                said += more
    return said


def test_a_server_that_chooses_its_parser_gets_the_limits(installed: None) -> None:
    config = uvicorn.Config(lambda: FastAPI(), factory=True)
    config.load()
    assert config.http_protocol_class is LimitedHttpProtocol


@pytest.mark.ray
def test_ray_calls_the_installer_in_its_proxy() -> None:
    from ray._common.utils import import_attr
    from ray.serve._private import constants

    assert hasattr(constants, PROXY_CALLBACK)
    assert import_attr(INSTALL) is install


def test_a_uvicorn_without_a_choice_of_parsers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(HTTP_PROTOCOLS, "auto")
    with pytest.raises(RuntimeError, match="no entry `auto`"):
        install()


@pytest.mark.parametrize("given", ["0", "-1", "soon", "inf", "nan"])
def test_no_number_of_seconds_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HEADER_S_VARIABLE, given)
    with pytest.raises(ValueError, match=f"{HEADER_S_VARIABLE}={given}: not a positive number"):
        install()


def test_what_is_buffered_beside_a_body_has_a_limit(port: int, subtests: pytest.Subtests) -> None:
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


def test_many_small_chunks_are_a_body_and_no_header(port: int) -> None:
    body = b"1\r\na\r\n" * HEADER_BYTES + b"0\r\n\r\n"
    assert ask(port, CHUNKED + body, patience_s=30) == (200, b"65536")


@pytest.mark.parametrize(
    "framing",
    [b"Content-Length: 1\r\n\r\na", b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"],
    ids=["length", "chunks"],
)
@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
def test_a_body_behind_an_upgrade_is_refused_and_never_read_as_a_request(
    port: int, protocol: bytes, framing: bytes
) -> None:
    upgrade = b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: " + protocol + b"\r\n"
    assert statuses(port, upgrade + framing + head(b"POST", b"/")) == [400]


# On a busy machine a second may pass before the first byte is sent.
@pytest.mark.parametrize("port", ["30"], indirect=True)
def test_requests_sent_together_are_each_answered(port: int) -> None:
    one = head(b"POST", b"/", b"Content-Length: 1\r\n") + b"a"
    last = head(b"POST", b"/", b"Content-Length: 1\r\nConnection: close\r\n") + b"a"
    assert statuses(port, one * 2 + last) == [200] * 3


def test_the_second_request_of_a_connection_has_a_time_limit_too(port: int) -> None:
    one = head(b"POST", b"/", b"Content-Length: 1\r\n") + b"a"
    said = replies(port, one + b"POST / HTTP/1.1\r\nX-A: ")
    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in said


@pytest.mark.parametrize("opened", [b"", b"GET / HTTP/1.1\r\nX-A: "], ids=["silent", "half"])
def test_a_thousand_idle_connections_hold_up_nobody_and_are_closed(
    port: int, opened: bytes
) -> None:
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


def test_who_asks_and_does_not_read_is_cut_off(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.http.header_limits.READER_S", 0.5)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        wire.sendall(head(b"GET", b"/large"))
        time.sleep(1.5)
        read = 0
        with contextlib.suppress(ConnectionError):
            while more := wire.recv(1 << 20):
                read += len(more)
    assert read < len(LARGE)


def test_who_reads_slowly_but_reads_gets_all(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.http.header_limits.READER_S", 2)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        wire.sendall(head(b"GET", b"/large", b"Connection: close\r\n"))
        read, ends = 0, time.monotonic() + 4
        while more := wire.recv(1 << 20):
            read += len(more)
            if time.monotonic() < ends:
                time.sleep(0.15)
    assert read > len(LARGE)
