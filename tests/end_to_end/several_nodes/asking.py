"""Threads that ask the graph continuously through each worker's proxy."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.end_to_end.several_nodes.pods import Network, Pod, await_that
from tests.end_to_end.small_graph import ANSWER_S, ASKED, WHOLE

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
    """Replies of one node in order, and the errors of requests without a reply."""

    url: str
    network: Network
    replies: list[Reply] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)

    def ask(self, stopped: threading.Event) -> None:
        # One connection per request: a connection to a lost node never gets a reply.
        limits = httpx.Limits(max_keepalive_connections=0)
        with (
            self.network.entered(),
            httpx.Client(limits=limits, timeout=ANSWER_S, base_url=self.url) as client,
        ):
            while not stopped.wait(0.1):
                try:
                    self.replies.append(Reply.of(client.post("/v1/search", json=ASKED)))
                except httpx.HTTPError as error:
                    self.unheard.append(repr(error))

    def at_once(self, number: int) -> list[Reply]:
        """Return the replies to `number` concurrent questions."""

        def one(_: int) -> Reply:
            with self.network.entered():
                return Reply.of(httpx.post(f"{self.url}/v1/search", json=ASKED, timeout=ANSWER_S))

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
        return f"{self.url}: {self.replies[-3:]} {self.unheard[-3:]}"

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
    urls = [f"http://{node.address}:{port}" for node in nodes]
    with asking_at(urls, nodes[0].network) as askers:
        yield {node.number: asker for node, asker in zip(nodes, askers, strict=True)}


@contextmanager
def asking_at(urls: Sequence[str], network: Network) -> Iterator[list[Asker]]:
    """Yield one asker per URL; they ask until the block ends."""
    askers = [Asker(url, network) for url in urls]
    stopped = threading.Event()
    threads = [threading.Thread(target=a.ask, args=(stopped,)) for a in askers]
    for thread in threads:
        thread.start()
    try:
        yield askers
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
