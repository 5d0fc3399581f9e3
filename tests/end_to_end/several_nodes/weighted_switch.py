"""A gateway that distributes requests between two clusters by weight, to ready proxies only."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from tests.end_to_end.several_nodes.pods import Network

# Interval and timeout of readiness probes, and timeout of a request, in seconds.
PROBE_S, PROBE_WAIT_S, REQUEST_S = 1.0, 5.0, 60.0


@dataclass
class Switch:
    """Proxies by cluster, and the weights of the clusters."""

    proxies: Mapping[str, Sequence[str]]
    weights: dict[str, int]
    # The endpoints of a Service: ready proxies whose pods are not terminating.
    ready: set[str] = field(default_factory=set)
    ending: set[str] = field(default_factory=set)
    url: str = ""

    def choose(self) -> str | None:
        names = [name for name, weight in self.weights.items() if weight]
        [name] = random.choices(names, [self.weights[n] for n in names])
        places = [p for p in self.proxies[name] if p in self.ready - self.ending]
        return random.choice(places) if places else None

    def probe(self) -> None:
        for places in self.proxies.values():
            for place in places:
                try:
                    well = httpx.get(f"{place}/-/healthz", timeout=PROBE_WAIT_S).is_success
                except httpx.HTTPError:
                    well = False
                (self.ready.add if well else self.ready.discard)(place)

    def probe_on(self, stopped: threading.Event) -> None:
        while not stopped.wait(PROBE_S):
            self.probe()


def handler_of(switch: Switch) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if (place := switch.choose()) is None:
                return self.reply(503, b"no proxy is ready", {})
            try:
                kind = {"Content-Type": self.headers["Content-Type"]}
                url = f"{place}{self.path}"
                got = httpx.post(url, content=body, headers=kind, timeout=REQUEST_S)
            except httpx.HTTPError as error:
                return self.reply(502, f"{place}: {error!r}".encode(), {})
            kept = {k: v for k, v in got.headers.items() if k.lower() == "retry-after"}
            return self.reply(got.status_code, got.content, kept)

        def reply(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing, to keep the output of tests readable."""

    return Handler


@contextmanager
def switching(
    network: Network, address: str, proxies: Mapping[str, Sequence[str]], first: str
) -> Iterator[Switch]:
    """Start a switch at an address of the network that first sends everything to `first`."""
    switch = Switch(proxies, {name: 100 if name == first else 0 for name in proxies})
    stopped = threading.Event()
    with network.entered():
        # Threads that are started here stay in the network namespace.
        server = ThreadingHTTPServer((address, 0), handler_of(switch))
        switch.url = f"http://{address}:{server.server_address[1]}"
        switch.probe()
        threads = [
            threading.Thread(target=server.serve_forever, args=(0.1,)),
            threading.Thread(target=switch.probe_on, args=(stopped,)),
        ]
        for thread in threads:
            thread.start()
    try:
        yield switch
    finally:
        stopped.set()
        server.shutdown()
        for thread in threads:
            thread.join()
        server.server_close()
