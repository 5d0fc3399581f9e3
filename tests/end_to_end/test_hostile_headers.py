"""Ray Serve's proxy against hostile clients, and replies after a process was lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from serve.http.header_limits import HEADER_BYTES, HEADER_FIELDS, HEADER_S_VARIABLE
from tests.end_to_end.command import ray_of_its_own, start
from tests.end_to_end.waiting import await_that
from tests.hostile.raw_http import ask, head, posted
from tests.serve.http_server import free_port

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

HEADER_S = 3
# Timeout of a reply on a busy machine.
PATIENCE_S = 60.0
# Timeout of Ray's shutdown on a busy machine.
STOP_S = 180.0
MIB = 1 << 20
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
UPGRADE += b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
OPENED = b"GET / HTTP/1.1\r\nHost: x\r\nX-Padding: "


@dataclass(frozen=True)
class Proxy:
    port: int
    process: psutil.Process
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def mib(self) -> float:
        return float(self.process.memory_info().rss) / MIB

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def is_alive(self) -> bool:
        return httpx.get(f"{self.url}/-/healthz", timeout=PATIENCE_S).status_code == 200

    def refuses_large_headers(self) -> bool:
        said = b""
        with self.connect() as wire, contextlib.suppress(ConnectionResetError):
            wire.sendall(OPENED + b"a" * (HEADER_BYTES + 1024))
            while more := wire.recv(65536):
                said += more
        return said.startswith(b"HTTP/1.1 431 ")


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    port, log = free_port(), tmp_path_factory.mktemp("proxy") / "log"
    command = [sys.executable, "-m", "tests.end_to_end.small_proxy", str(port)]
    pipe = subprocess.PIPE
    with ray_of_its_own() as own, log.open("wb") as written:
        variables = {**own, HEADER_S_VARIABLE: str(HEADER_S)}
        process = start(command, variables, text=True, stdin=pipe, stdout=pipe, stderr=written)
        assert process.stdin
        assert process.stdout
        try:
            pid = process.stdout.readline().strip()
            assert pid.isdigit(), log.read_text()
            yield Proxy(port, psutil.Process(int(pid)), log)
        finally:
            process.stdin.close()
            process.wait(timeout=STOP_S)
            process.stdout.close()


def send_without_end(wire: socket.socket, piece: bytes) -> None:
    """Send up to 64 MiB, far more than the kernel buffers for a closed connection."""
    for _ in range(1024):
        wire.sendall(piece)


def test_start_does_not_warn_if_the_proxy_has_limits(proxy: Proxy) -> None:
    assert "warning: \n" in proxy.log.read_text()


def test_header_over_the_size_limit_is_refused(proxy: Proxy) -> None:
    assert proxy.refuses_large_headers()


def test_more_header_fields_than_the_limit_are_refused(proxy: Proxy) -> None:
    fields = b"".join(b"X-%d: a\r\n" % number for number in range(HEADER_FIELDS + 1))
    status, body = ask(proxy.port, head(b"GET", b"/", fields), PATIENCE_S)
    assert status == 431
    assert b"over 256 header fields" in body


@pytest.mark.parametrize("piece", [b"a" * 65536, b"X-A: a\r\n" * 8192], ids=["value", "fields"])
def test_endless_header_takes_no_memory_and_blocks_no_request(proxy: Proxy, piece: bytes) -> None:
    assert proxy.is_alive()
    before = proxy.mib()
    with proxy.connect() as wire:
        wire.sendall(OPENED)
        with pytest.raises(ConnectionError):
            send_without_end(wire, piece)
    assert proxy.is_alive()
    assert proxy.mib() - before < 8


def test_slow_header_times_out(proxy: Proxy) -> None:
    with proxy.connect() as wire:
        wire.sendall(OPENED)
        wire.settimeout(0.1)
        said, deadline = b"", time.monotonic() + PATIENCE_S
        while not said and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                said = wire.recv(65536)
            if not said:
                wire.sendall(b"a")
        assert said.startswith(b"HTTP/1.1 408 ")


def test_upgrade_to_websocket_is_ignored_and_refused_with_a_body(proxy: Proxy) -> None:
    for method in (b"GET", b"POST"):
        assert ask(proxy.port, head(method, b"/", UPGRADE)) == (200, method + b" body 0 padding 0")
    status, body = ask(proxy.port, posted(b"{}", path=b"/", more=UPGRADE))
    assert status == 400
    assert b"does not upgrade connections" in body


def test_large_header_and_body_within_the_limits_pass(proxy: Proxy) -> None:
    padding = b"X-Padding: " + b"a" * (16 << 10) + b"\r\n"
    reply = ask(proxy.port, posted(b"a" * MIB, path=b"/", more=padding), PATIENCE_S)
    assert reply == (200, b"POST body 1048576 padding 16384")


def test_connection_is_kept_alive_for_requests_and_streams(proxy: Proxy) -> None:
    with httpx.Client(base_url=proxy.url, timeout=PATIENCE_S) as client:
        for _ in range(3):
            assert client.post("/", content=b"abc").text == "POST body 3 padding 0"
            time.sleep(HEADER_S / 2)
        with client.stream("GET", "/stream") as reply:
            assert "".join(reply.iter_text()).splitlines()[-1] == "piece 4"


def test_request_of_a_killed_replica_gets_503_with_retry_after(proxy: Proxy) -> None:
    with (
        httpx.Client(base_url=proxy.url, timeout=PATIENCE_S) as client,
        ThreadPoolExecutor() as pool,
    ):
        pid = int(client.get("/pid").text)
        asked = pool.submit(client.get, "/slow")
        time.sleep(2)
        os.kill(pid, signal.SIGKILL)
        reply = asked.result()
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
        assert "was lost; send it again" in reply.json()["detail"]

        def new_pid() -> str:
            now = client.get("/pid")
            assert now.status_code in (200, 503)
            return now.text if now.is_success else ""

        assert int(await_that(new_pid, every_s=0.5)) != pid


def test_killed_proxy_restarts_with_its_limits(proxy: Proxy) -> None:
    proxy.process.kill()
    await_that(proxy.is_alive, every_s=0.5, starting=True)
    assert proxy.refuses_large_headers()
