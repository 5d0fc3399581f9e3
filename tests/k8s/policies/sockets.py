"""Pods as networks of their own with nftables rules, and which of them reach which by TCP.

others: one network ── bridge ──┬── pod
                                ├── pod
                                └── pod
"""

from __future__ import annotations

import contextlib
import resource
import select
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

from tests.network_namespaces import Namespace

# The last connection that is let through is made within microseconds; what is refused never is.
QUIET_S = 0.4
GATEWAY = "10.77.255.254"
MOST_FILES = 16_384


@dataclass
class Networks:
    """Who has which address on which network."""

    addresses: dict[str, str] = field(default_factory=dict)
    networks: dict[str, Namespace] = field(default_factory=dict)

    def listen(self, ports: Sequence[int], stack: ExitStack) -> None:
        for name, network in self.networks.items():
            with network.entered():
                for port in ports:
                    listener = stack.enter_context(socket.socket())
                    listener.bind((self.addresses[name], port))
                    listener.listen(256)

    def reached(self, ports: Sequence[int]) -> dict[tuple[str, str], set[int]]:
        """The ports on which the first reaches the second, where there is any."""
        with ExitStack() as stack:
            self.listen(ports, stack)
            calls: dict[int, tuple[str, str, int]] = {}
            poll = select.epoll()
            stack.callback(poll.close)
            for source, network in self.networks.items():
                with network.entered():
                    for target in self.networks:
                        # Those of one network are no pods, or none of ours.
                        if self.networks[target] is network:
                            continue
                        for port in ports:
                            call = stack.enter_context(self._call(source, target, port))
                            poll.register(call, select.EPOLLOUT)
                            calls[call.fileno()] = (source, target, port)
            found: dict[tuple[str, str], set[int]] = {}
            for source, target, port in connected(poll, calls):
                found.setdefault((source, target), set()).add(port)
            return found

    def _call(self, source: str, target: str, port: int) -> socket.socket:
        call = socket.socket()
        call.setblocking(False)
        call.bind((self.addresses[source], 0))
        # The packet filter tells some refusals at once.
        with contextlib.suppress(BlockingIOError, PermissionError):
            call.connect((self.addresses[target], port))
        return call


def connected(
    poll: select.epoll, calls: Mapping[int, tuple[str, str, int]]
) -> Iterator[tuple[str, str, int]]:
    """Those that are made until none has been for a while."""
    last = time.monotonic()
    while time.monotonic() - last < QUIET_S:
        for number, events in poll.poll(QUIET_S):
            poll.unregister(number)
            if not events & (select.EPOLLERR | select.EPOLLHUP):
                last = time.monotonic()
                yield calls[number]


@contextmanager
def networks(
    pods: Mapping[str, str], rules: Mapping[str, str], others: Mapping[str, str]
) -> Iterator[Networks]:
    """A network for each of `pods`, under its rules, and one for all `others`; by addresses.

    Skips the test where there can be none.
    """
    if not (shutil.which("nft") and shutil.which("ip")):
        pytest.skip("needs nft and ip")
    found = Networks({**pods, **others})
    with ExitStack() as stack, many_files():
        outer = make_network(stack)
        outer.run("ip", "link", "add", "bridge", "type", "bridge")
        outer.run("ip", "addr", "add", f"{GATEWAY}/16", "dev", "bridge")
        outer.run("ip", "link", "set", "bridge", "up")
        for name, address in others.items():
            outer.run("ip", "addr", "add", f"{address}/32", "dev", "bridge")
            found.networks[name] = outer
        for number, (name, address) in enumerate(pods.items()):
            found.networks[name] = inner = make_network(stack)
            peer = f"type veth peer name pod{number} netns {outer.path}"
            inner.run("ip", "link", "add", "eth0", *peer.split())
            outer.run("ip", "link", "set", f"pod{number}", "master", "bridge", "up")
            steps = (
                f"addr add {address}/16 dev eth0",
                "link set eth0 up",
                f"route add default via {GATEWAY}",
            )
            inner.run("ip", "-batch", "-", given="\n".join(steps))
            inner.run("nft", "-f", "-", given=rules[name])
        yield found


def make_network(stack: ExitStack) -> Namespace:
    try:
        made = Namespace()
    except OSError as error:
        pytest.skip(f"needs the right to make networks (root): {error}")
    stack.callback(made.close)
    return made


@contextmanager
def many_files() -> Iterator[None]:
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if most == resource.RLIM_INFINITY else min(MOST_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before, wanted), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
