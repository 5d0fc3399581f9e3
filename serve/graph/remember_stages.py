"""The stages of one question, each asked the same thing only once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from cluster.index.read_shard import Candidates, Fetched, ShardQuery, Statistics
from cluster.index.vectors import Vectors
from cluster.records import Citation, Entity
from serve.graph.stages import ShardStage, Stages
from serve.graph.versions.read_version import FromVersion

T = TypeVar("T")


class _Memory:
    """Replies by what was asked; one that failed is asked for again."""

    def __init__(self) -> None:
        self._replies: dict[Hashable, asyncio.Future[Any]] = {}

    async def recall(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        known = self._replies.get(key)
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            known = self._replies[key] = asyncio.ensure_future(ask())
        reply: T = await known
        return reply


def _bytes_of(vector: Vectors | None) -> bytes | None:
    return None if vector is None else np.ascontiguousarray(vector).tobytes()


class RememberedShard:
    def __init__(self, shard: ShardStage) -> None:
        self._shard = shard
        self._memory = _Memory()

    async def statistics(self, terms: list[str], over: str) -> Statistics:
        key = ("statistics", tuple(terms), over)
        return await self._memory.recall(key, lambda: self._shard.statistics(terms, over))

    async def search(self, query: ShardQuery) -> FromVersion[Candidates]:
        bm25 = query.bm25 and (tuple(query.bm25.weights.items()), query.bm25.k1, query.bm25.b)
        limits = (query.dense_limit, query.bm25_limit, query.bm25_over)
        key = ("search", _bytes_of(query.vector), bm25, limits)
        return await self._memory.recall(key, lambda: self._shard.search(query))

    async def fetch(
        self, pmids: Sequence[int], vector: Vectors | None
    ) -> FromVersion[list[Fetched]]:
        key = ("fetch", tuple(pmids), _bytes_of(vector))
        return await self._memory.recall(key, lambda: self._shard.fetch(pmids, vector))

    async def citation(self, pmid: int) -> Citation | None:
        return await self._shard.citation(pmid)


class RememberedStages:
    """`stages` for the searches of one question; what is not remembered passes through."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._memory = _Memory()
        self.shards: Sequence[ShardStage] = [RememberedShard(shard) for shard in stages.shards]

    async def entities(self, text: str) -> list[Entity]:
        key = ("entities", text)
        return await self._memory.recall(key, lambda: self._stages.entities(text))

    async def encode(self, text: str) -> Vectors:
        return await self._memory.recall(("encode", text), lambda: self._stages.encode(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stages, name)
