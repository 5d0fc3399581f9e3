"""Search all shards for one question, and record failed shards and the index versions read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass

from cluster.index.bm25 import Bm25Query
from cluster.index.filters.filters import Filters
from cluster.index.layout import pmids_by_shard
from cluster.index.read_shard import (
    Candidates,
    Fetched,
    Found,
    ShardQuery,
    join_candidates,
    limit_of_shard,
)
from cluster.index.terms.collection import Statistics
from cluster.index.tokens.codec import Halves
from cluster.index.vectors import Vectors
from cluster.settings.search_settings import RetrieverSettings
from serve.contracts.stage_calls import StageCalls
from serve.contracts.stage_watch import StageLostError
from serve.search.make_queries import Query
from serve.search.shard_stage import FETCH, FIND, FromVersion, VersionName, oldest

# Accepted share of searches that fetch some of the best citations with a second call, because a
# shard has more of them than it returned. Returning more at first would slow every search.
FETCHED_LATER = 0.05


@dataclass(frozen=True, slots=True)
class Gathered:
    """Results of all shards: candidates, and citations by PMID."""

    candidates: Candidates
    fetched: Mapping[int, Fetched]


class ShardSearch:
    """Searches all shards concurrently; shards that fail are skipped and counted."""

    def __init__(self, stages: StageCalls) -> None:
        self._stages = stages
        self._facts = stages.facts
        self._read: list[VersionName] = []
        self._lost: set[int] = set()

    @property
    def coverage(self) -> str:
        """Number of shards that answered every search out of all shards, as "2/2"."""
        return f"{self._facts.shards - len(self._lost)}/{self._facts.shards}"

    async def version(self) -> VersionName:
        """Return the oldest version that was read; raises StageLostError if no shard answers."""
        if not self._read:
            await self._fetch({number: [] for number in range(self._facts.shards)}, None)
        if not self._read:
            raise _all_lost()
        return oldest(self._read)

    def shard_query(
        self,
        query: Query,
        known: Statistics | None,
        retrieve: RetrieverSettings,
        *,
        citations: int,
        weights: tuple[float, float],
        tokens: Halves | None,
        filters: Filters,
    ) -> ShardQuery:
        """Return the query to send to every shard, for `citations` citations of all shards.

        If the statistics `known` are None, each shard weights the terms by its own counts.
        """
        bm25 = self._bm25_query(query.weights, known, retrieve) if retrieve.bm25 else None
        shards = self._facts.shards
        return ShardQuery(
            vector=query.vector if retrieve.dense else None,
            bm25=bm25,
            dense_limit=limit_of_shard(retrieve.dense, shards),
            bm25_limit=limit_of_shard(retrieve.bm25, shards),
            bm25_over=retrieve.bm25_over,
            own_statistics=known is None,
            tokens=tokens,
            fetched=limit_of_shard(citations, shards, FETCHED_LATER),
            weights=weights,
            filters=filters,
        )

    def find(self, asked: ShardQuery) -> Awaitable[list[FromVersion[Found] | None]]:
        """Send a query to all shards; the reply of a shard that fails is None."""
        shards = range(self._facts.shards)
        return asyncio.gather(*(self._stages.call(FIND.of_shard(n), asked) for n in shards))

    def gather(self, answers: Sequence[FromVersion[Found] | None]) -> Gathered:
        """Join the replies of `find`; raises StageLostError if all shards failed."""
        self._lost |= {n for n, answer in enumerate(answers) if answer is None}
        found = [answer for answer in answers if answer is not None]
        if not found:
            raise _all_lost()
        self._read += [part.read for part in found]
        return Gathered(
            join_candidates([part.value.candidates for part in found]),
            {f.citation.pmid: f for part in found for f in part.value.fetched},
        )

    async def fetch(
        self,
        pmids: Sequence[int],
        vector: Vectors | None,
        tokens: Halves | None = None,
        *,
        count_lost: bool = False,
    ) -> list[Fetched]:
        """Return the citations among `pmids` that the shards hold, in the given order.

        They are scored as in `ShardReader.fetch`. With `count_lost`, a shard that does not answer
        reduces the coverage; use it for PMIDs that no search has returned.
        """
        by_shard = pmids_by_shard(pmids, self._facts.shards)
        fetched, lost = await self._fetch(by_shard, vector, tokens)
        if count_lost:
            self._lost |= lost
        held = {f.citation.pmid: f for f in fetched}
        return [held[pmid] for pmid in pmids if pmid in held]

    async def _fetch(
        self,
        by_shard: Mapping[int, Sequence[int]],
        vector: Vectors | None,
        tokens: Halves | None = None,
    ) -> tuple[list[Fetched], set[int]]:
        parts = await asyncio.gather(
            *(
                self._stages.call(FETCH.of_shard(n), pmids, vector, tokens)
                for n, pmids in by_shard.items()
            )
        )
        self._read += [part.read for part in parts if part is not None]
        lost = {n for n, part in zip(by_shard, parts, strict=True) if part is None}
        return [f for part in parts if part is not None for f in part.value], lost

    def _bm25_query(
        self,
        weights: Mapping[str, float],
        statistics: Statistics | None,
        retrieve: RetrieverSettings,
    ) -> Bm25Query:
        k1 = self._facts.k1 if retrieve.bm25_k1 is None else retrieve.bm25_k1
        b = self._facts.b if retrieve.bm25_b is None else retrieve.bm25_b
        query = Bm25Query(weights, {}, 0, 0.0, k1, b)
        return query.with_statistics(statistics) if statistics else query


def _all_lost() -> StageLostError:
    return StageLostError("no shard of the index answered; try again in a moment")
