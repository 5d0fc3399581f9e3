"""Threads that ask the graph continuously through each worker's proxy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from tests.end_to_end.several_nodes.pods import Network, Pod
from tests.end_to_end.small_graph import ANSWER_S, ASKED, WHOLE
from tests.end_to_end.waiting import await_that, meanwhile

SOME = 10


@dataclass(frozen=True)
class Reply:
    status: int
    again_after: str | None
    body: dict[str, Any]

    @classmethod
    def of(cls, reply: httpx.Response) -> Reply:
        body = reply.json() if reply.is_success else {"said": reply.text}
        return cls(reply.status_code, reply.headers.get("Retry-After"), body)

    @property
    def whole(self) -> bool:
        return self.status == 200 and self.body["degraded"] == []


@dataclass
class Asker:
    """Replies in order, and the errors of requests without a reply.

    `choose` returns the URL of the proxy for the next request.
    """

    choose: Callable[[], str]
    network: Network
    replies: list[Reply] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)

    def ask(self, stopped: threading.Event) -> None:
        # One connection per request: a connection to a lost node never gets a reply.
        limits = httpx.Limits(max_keepalive_connections=0)
        with (
            self.network.entered(),
            httpx.Client(limits=limits, timeout=ANSWER_S) as client,
        ):
            while not stopped.wait(0.1):
                try:
                    reply = client.post(f"{self.choose()}/v1/search", json=ASKED)
                    self.replies.append(Reply.of(reply))
                except httpx.HTTPError as error:
                    self.unheard.append(repr(error))

    def at_once(self, number: int) -> list[Reply]:
        """Return the replies to `number` concurrent questions."""

        def one(_: int) -> Reply:
            with self.network.entered():
                url = f"{self.choose()}/v1/search"
                return Reply.of(httpx.post(url, json=ASKED, timeout=ANSWER_S))

        with ThreadPoolExecutor(number) as threads:
            return list(threads.map(one, range(number)))

    def await_whole(self) -> None:
        """Wait for several complete answers in a row."""
        mark = len(self.replies)

        def whole() -> bool:
            last = self.since(mark)[-SOME:]
            return len(last) == SOME and all(reply.whole for reply in last)

        await_that(whole, self.last)

    def await_more(self) -> None:
        mark = len(self.replies)
        await_that(lambda: len(self.since(mark)) >= SOME, self.last)

    def await_partial(self) -> None:
        await_that(self.partial, self.last)

    def partial(self) -> list[Reply]:
        """Return the answers from only a part of the shards."""
        return [r for r in self.replies if r.status == 200 and r.body["coverage"] != WHOLE]

    def last(self) -> str:
        return f"{self.replies[-3:]} {self.unheard[-3:]}"

    def since(self, mark: int) -> list[Reply]:
        return self.replies[mark:]

    def faults(self) -> list[Reply]:
        """Return the replies that are neither answers nor errors with Retry-After."""
        return [
            reply
            for reply in self.replies
            if reply.status != 200 and not (reply.status in (429, 503) and reply.again_after)
        ]


@contextmanager
def asking(nodes: Sequence[Pod], port: int) -> Iterator[dict[int, Asker]]:
    """Yield one asker per node, by the node's number; they ask until the block ends."""
    choices = [partial(str, f"http://{node.address}:{port}") for node in nodes]
    with asking_at(choices, nodes[0].network) as askers:
        yield {node.number: asker for node, asker in zip(nodes, askers, strict=True)}


@contextmanager
def asking_at(choices: Sequence[Callable[[], str]], network: Network) -> Iterator[list[Asker]]:
    """Yield one asker for each choice of URLs; they ask until the block ends."""
    askers = [Asker(choose, network) for choose in choices]
    with meanwhile(*(asker.ask for asker in askers)):
        yield askers
