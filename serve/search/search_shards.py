"""One question's searches of the shards: what they find, hold, and which version they read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.index.bm25 import Bm25Query
from cluster.index.layout import shard_of
from cluster.index.read_shard import (
    Candidates,
    Fetched,
    ShardQuery,
    join_candidates,
    limit_of_shard,
)
from cluster.index.vectors import Vectors
from cluster.settings.search_settings import RetrieverSettings
from serve.graph.versions.read_version import VersionName, oldest
from serve.graph.watch_stages import StageLostError
from serve.graph.watched_stages import WatchedStages
from serve.search.make_queries import Query


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates of all shards, and the BM25 query that found them, if one did."""

    candidates: Candidates
    bm25: Bm25Query | None


class ShardSearch:
    """Asks all shards at once; one that is lost is left out and counted."""

    def __init__(self, stages: WatchedStages) -> None:
        self._shards = stages.stages.shards
        self._watch = stages.watch
        self._deadline_s = stages.settings.shard.deadline_s
        self._facts = stages.stages.facts
        self._read: list[VersionName] = []
        self._lost: set[int] = set()

    @property
    def coverage(self) -> str:
        """Shards that answered every search, of all, as "2/2"."""
        return f"{self._facts.shards - len(self._lost)}/{self._facts.shards}"

    async def version(self) -> VersionName:
        """The oldest version that was read; raises StageLostError when no shard answers."""
        if not self._read:
            await self._fetch({number: [] for number in range(self._facts.shards)}, None)
        if not self._read:
            raise _all_lost()
        return oldest(self._read)

    async def find(self, query: Query, retrieve: RetrieverSettings) -> Found:
        """The candidates of the shards that answer; raises StageLostError when none does."""
        bm25, lost = None, set[int]()
        if retrieve.bm25:
            # One that has let its deadline pass is not waited for a second time.
            bm25, lost = await self._bm25_query(query.weights, retrieve)
        asked = ShardQuery(
            query.vector if retrieve.dense else None,
            bm25,
            limit_of_shard(retrieve.dense, self._facts.shards),
            limit_of_shard(retrieve.bm25, self._facts.shards),
            retrieve.bm25_over,
        )
        numbers = [n for n in range(self._facts.shards) if n not in lost]
        answers = await asyncio.gather(
            *(
                self._watch.run(
                    "retrieve", self._shards[n].search(asked), self._deadline_s, _left_out(n)
                )
                for n in numbers
            )
        )
        lost |= {n for n, answer in zip(numbers, answers, strict=True) if answer is None}
        self._lost |= lost
        found = [answer for answer in answers if answer is not None]
        if not found:
            raise _all_lost()
        self._read += [part.read for part in found]
        return Found(join_candidates([part.value for part in found]), bm25)

    async def fetch(
        self, pmids: Sequence[int], vector: Vectors | None, *, count_lost: bool = False
    ) -> list[Fetched]:
        """The citations among `pmids` that the shards hold, in that order.

        `count_lost` counts a shard that does not answer against the coverage, for what was
        not searched before.
        """
        by_shard: dict[int, list[int]] = {}
        for pmid in pmids:
            by_shard.setdefault(shard_of(pmid, self._facts.shards), []).append(pmid)
        fetched, lost = await self._fetch(by_shard, vector)
        if count_lost:
            self._lost |= lost
        held = {f.citation.pmid: f for f in fetched}
        return [held[pmid] for pmid in pmids if pmid in held]

    async def _fetch(
        self, by_shard: Mapping[int, Sequence[int]], vector: Vectors | None
    ) -> tuple[list[Fetched], set[int]]:
        parts = await asyncio.gather(
            *(
                self._watch.run(
                    "fetch", self._shards[n].fetch(pmids, vector), self._deadline_s, _left_out(n)
                )
                for n, pmids in by_shard.items()
            )
        )
        self._read += [part.read for part in parts if part is not None]
        lost = {n for n, part in zip(by_shard, parts, strict=True) if part is None}
        return [f for part in parts if part is not None for f in part.value], lost

    async def _bm25_query(
        self, weights: Mapping[str, float], retrieve: RetrieverSettings
    ) -> tuple[Bm25Query, set[int]]:
        """The query with the statistics of all shards that answer, and which do not.

        Each shard tells those of the version that it reads.
        """
        counts = await asyncio.gather(
            *(
                self._watch.run(
                    "statistics",
                    shard.statistics(list(weights), retrieve.bm25_over),
                    self._deadline_s,
                    _left_out(number),
                )
                for number, shard in enumerate(self._shards)
            )
        )
        counted = [count for count in counts if count is not None]
        total: Counter[str] = Counter()
        for count in counted:
            total.update(count.frequencies)
        units = sum(count.units for count in counted)
        mean_terms = sum(count.terms for count in counted) / max(units, 1)
        k1 = self._facts.k1 if retrieve.bm25_k1 is None else retrieve.bm25_k1
        b = self._facts.b if retrieve.bm25_b is None else retrieve.bm25_b
        lost = {number for number, count in enumerate(counts) if count is None}
        return Bm25Query(weights, dict(total), units, mean_terms, k1, b), lost


def _left_out(number: int) -> str:
    return f"shard {number} left out"


def _all_lost() -> StageLostError:
    return StageLostError("no shard of the index answered; try again in a moment")
