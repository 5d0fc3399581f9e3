"""HTTP servers that record the requests they receive, as an endpoint or a proxy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Recorder(ThreadingHTTPServer):
    """Record each request as one text: request line, headers and body.

    `requests` are the same as (headers with lower-case names, body). The reply is `reply`, an empty
    body for metrics, or a redirect if the path is in `redirects`. `statuses` are sent in turn
    instead of its status.
    """

    daemon_threads = True

    def __init__(self, reply: bytes = b"{}") -> None:
        super().__init__(("0.0.0.0", 0), _Handler)
        self.received: list[str] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.redirects: dict[str, str] = {}
        self.reply = reply

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.received.append(f"{self.requestline}\n{self.headers}\n{body!r}")
        self.server.requests.append(({k.lower(): v for k, v in self.headers.items()}, body))
        place = self.server.redirects.get(self.path)
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if statuses else 302 if place else 200)
        if place:
            self.send_header("Location", place)
        reply = b"" if self.path.endswith("/metrics") else self.server.reply
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_POST = do_PUT = do_HEAD = do_CONNECT = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def recorder(reply: bytes = b"{}") -> Iterator[Recorder]:
    """Run a Recorder until the block ends."""
    with Recorder(reply) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
