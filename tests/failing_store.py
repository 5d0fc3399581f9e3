"""A proxy in front of a local object store that fails on request.

    python -m tests.failing_store PORT      prints its port; reads commands from standard input

It is a process of its own because Arrow may hold the GIL while it waits for a store.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from tests.serve.http_server import free_port

ROOT = Path(__file__).resolve().parents[1]
# Refused connection, reset connection, truncated reply, and two HTTP statuses.
Fault = Literal["refuse", "reset", "cut", "500", "403"]
_CUT_AFTER = 1000
_BLOCK = 1 << 16


class FailingStore:
    """The proxy at `port`, which works except between `fail` and `heal`."""

    def __init__(self, port: int, orders: IO[bytes], done: IO[bytes]) -> None:
        self.port = port
        self._orders, self._done = orders, done

    def fail(self, fault: Fault, at: str) -> None:
        """Fail every request from the next one that contains `at`."""
        self._order({"fault": fault, "at": at})

    def heal(self) -> None:
        self._order({"fault": "", "at": ""})

    def _order(self, order: dict[str, str]) -> None:
        self._orders.write(json.dumps(order).encode() + b"\n")
        self._orders.flush()
        self._done.readline()


@contextmanager
def failing_store(port: int) -> Iterator[FailingStore]:
    """Start a proxy in front of the store at `port`."""
    command = [sys.executable, "-m", "tests.failing_store", str(port)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        yield FailingStore(int(proxy.stdout.readline()), proxy.stdin, proxy.stdout)
        proxy.communicate(b"")


class _Proxy:
    def __init__(self, upstream: int) -> None:
        self._upstream = ("127.0.0.1", upstream)
        self._fault, self._at, self._fails = "", b"", False
        self._clients: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # A fixed port, which stays the same while the proxy refuses connections.
        self.port = free_port()
        self._listener.bind(("127.0.0.1", self.port))
        self._listen()

    def order(self, fault: str, at: str) -> None:
        refused = self._fails and self._fault == "refuse"
        self._fault, self._at, self._fails = fault, at.encode(), False
        # Close the connections that were opened before the command.
        self._disconnect()
        if refused:
            self._listen()

    def _listen(self) -> None:
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._clients.add(client)
        with client, suppress(OSError), socket.create_connection(self._upstream) as store:
            threading.Thread(target=_pass_on, args=(store, client), daemon=True).start()
            try:
                while asked := client.recv(_BLOCK):
                    if self._fault and (self._fails or self._at in asked):
                        self._fail(client, asked)
                        break
                    store.sendall(asked)
            finally:
                # Otherwise the other thread waits for the store forever.
                store.shutdown(socket.SHUT_RDWR)
        self._clients.discard(client)

    def _fail(self, client: socket.socket, asked: bytes) -> None:
        with self._lock:
            first, self._fails = not self._fails, True
        if self._fault.isdigit():
            head = f"HTTP/1.1 {self._fault} Failed\r\nContent-Length: 0\r\nConnection: close"
            client.sendall(head.encode() + b"\r\n\r\n")
            client.shutdown(socket.SHUT_WR)
            # Closing a socket with unread bytes would reset the connection.
            while client.recv(_BLOCK):
                pass
            return
        if self._fault == "cut" and first:
            with socket.create_connection(self._upstream) as store:
                store.sendall(asked)
                client.sendall(store.recv(_CUT_AFTER, socket.MSG_WAITALL))
        if self._fault == "refuse" and first:
            # The socket keeps its port and refuses connections until it listens again. A second
            # shutdown would close the connections accepted after that.
            self._listener.shutdown(socket.SHUT_RDWR)
        # Closing with this option resets the connection.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._clients.discard(client)
        self._disconnect()

    def _disconnect(self) -> None:
        for client in tuple(self._clients):
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_BLOCK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def main(upstream: int) -> None:
    proxy = _Proxy(upstream)
    print(proxy.port, flush=True)
    for line in sys.stdin:
        proxy.order(**json.loads(line))
        print("done", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
