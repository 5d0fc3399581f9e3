"""Choice between the proxies of two clusters by weight, among those that are ready."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from tests.end_to_end.waiting import meanwhile
from tests.network_namespaces import Namespace

# Interval and timeout of readiness probes in seconds.
PROBE_S, PROBE_WAIT_S = 1.0, 5.0


@dataclass
class Switch:
    """Proxies by cluster, and the weights of the clusters, as of a gateway in front of them."""

    proxies: Mapping[str, str]
    weights: dict[str, int]
    # The endpoints of a Service: ready proxies whose pods are not terminating.
    ready: set[str] = field(default_factory=set)
    ending: set[str] = field(default_factory=set)

    def choose(self) -> str:
        """Return the proxy for the next request; raises ConnectError if it is not ready."""
        [name] = random.choices(list(self.weights), list(self.weights.values()))
        if self.proxies[name] not in self.ready - self.ending:
            raise httpx.ConnectError(f"no proxy of {name} is ready")
        return self.proxies[name]

    def probe(self) -> None:
        for place in self.proxies.values():
            try:
                well = httpx.get(f"{place}/-/healthz", timeout=PROBE_WAIT_S).is_success
            except httpx.HTTPError:
                well = False
            (self.ready.add if well else self.ready.discard)(place)


@contextmanager
def switching(network: Namespace, proxies: Mapping[str, str], first: str) -> Iterator[Switch]:
    """Probe the proxies until the block ends; the switch first sends everything to `first`."""
    switch = Switch(proxies, {name: 100 if name == first else 0 for name in proxies})

    def probe_on(over: threading.Event) -> None:
        with network.entered():
            while not over.wait(PROBE_S):
                switch.probe()

    with network.entered():
        switch.probe()
    with meanwhile(probe_on):
        yield switch
