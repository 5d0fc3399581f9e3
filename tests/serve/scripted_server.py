"""Server that sends scripted bytes, one reply per connection."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any


def reply(status: int, body: Any, *headers: str, whole: bool = True) -> bytes:
    """Return an HTTP reply with JSON; unless `whole`, it is truncated."""
    text = json.dumps(body).encode()
    length = len(text) + (0 if whole else 10)
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {length}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + text


def read_request(connection: socket.socket) -> str:
    """Return the request line and headers; also read the body, or the reply would be reset."""
    with connection.makefile("rb") as wire:
        head = b"".join(iter(wire.readline, b"\r\n")).decode()
        length = re.search(r"^content-length: (\d+)", head, re.M | re.I)
        wire.read(int(length[1]) if length else 0)
    return head


class ScriptedServer:
    """Sends the replies in turn and repeats the last; `heads` are the requests received."""

    def __init__(self, listener: socket.socket, replies: Sequence[bytes]) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.heads: list[str] = []
        self._listener = listener
        self._replies = list(replies)

    def run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):
                    self.heads.append(read_request(connection))
                    last = len(self._replies) == 1
                    connection.sendall(self._replies[0] if last else self._replies.pop(0))


@contextmanager
def scripted(*replies: bytes) -> Iterator[ScriptedServer]:
    """Run a `ScriptedServer`; an empty reply closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = ScriptedServer(listener, replies)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
