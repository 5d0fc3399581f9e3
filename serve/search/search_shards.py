"""One question's searches of the shards: what they find, hold, and which version they read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.index.bm25 import Bm25Query
from cluster.index.filters.filters import Filters
from cluster.index.layout import shard_of
from cluster.index.read_shard import (
    Candidates,
    Fetched,
    ShardQuery,
    join_candidates,
    limit_of_shard,
)
from cluster.index.terms.collection import Statistics
from cluster.index.tokens.codec import Halves
from cluster.index.vectors import Vectors
from cluster.settings.search_settings import RetrieverSettings
from serve.graph.versions.read_version import VersionName, oldest
from serve.graph.watch_stages import StageLostError
from serve.graph.watched_stages import WatchedStages
from serve.search.make_queries import Query

# In how many searches, at most, a citation of the best is fetched by a call of its own: its shard
# had more of them than its share. More fetched at first would cost every search.
FETCHED_LATER = 0.05


@dataclass(frozen=True, slots=True)
class Gathered:
    """What all shards found: candidates, citations by PMID, and the BM25 query, if one was."""

    candidates: Candidates
    fetched: Mapping[int, Fetched]
    bm25: Bm25Query | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many citations a search wants of all shards, whose scores `weights` mix; `tokens` of
    the question score them once more. `filters` say which may be found.
    """

    citations: int
    weights: tuple[float, float]
    tokens: Halves | None
    filters: Filters


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

    async def find(
        self, query: Query, known: Statistics | None, retrieve: RetrieverSettings, wanted: Wanted
    ) -> Gathered:
        """What the shards that answer find; raises StageLostError when none does.

        Without the statistics `known` of its terms each shard weighs them by its own.
        """
        bm25 = self._bm25_query(query.weights, known, retrieve) if retrieve.bm25 else None
        shards = self._facts.shards
        asked = ShardQuery(
            query.vector if retrieve.dense else None,
            bm25,
            limit_of_shard(retrieve.dense, shards),
            limit_of_shard(retrieve.bm25, shards),
            retrieve.bm25_over,
            known is None,
            wanted.tokens,
            limit_of_shard(wanted.citations, shards, FETCHED_LATER),
            wanted.weights,
            wanted.filters,
        )
        answers = await asyncio.gather(
            *(
                self._watch.run("retrieve", shard.find(asked), self._deadline_s, _left_out(n))
                for n, shard in enumerate(self._shards)
            )
        )
        self._lost |= {n for n, answer in enumerate(answers) if answer is None}
        found = [answer for answer in answers if answer is not None]
        if not found:
            raise _all_lost()
        self._read += [part.read for part in found]
        return Gathered(
            join_candidates([part.value.candidates for part in found]),
            {f.citation.pmid: f for part in found for f in part.value.fetched},
            bm25,
        )

    async def fetch(
        self,
        pmids: Sequence[int],
        vector: Vectors | None,
        tokens: Halves | None = None,
        *,
        count_lost: bool = False,
    ) -> list[Fetched]:
        """The citations among `pmids` that the shards hold, in that order.

        They are scored as by `ShardReader.fetch`. `count_lost` counts a shard that does not
        answer against the coverage, for what was not searched before.
        """
        by_shard: dict[int, list[int]] = {}
        for pmid in pmids:
            by_shard.setdefault(shard_of(pmid, self._facts.shards), []).append(pmid)
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
        calls = [(n, self._shards[n].fetch(pmids, vector, tokens)) for n, pmids in by_shard.items()]
        parts = await asyncio.gather(
            *(self._watch.run("fetch", call, self._deadline_s, _left_out(n)) for n, call in calls)
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


def _left_out(number: int) -> str:
    return f"shard {number} left out"


def _all_lost() -> StageLostError:
    return StageLostError("no shard of the index answered; try again in a moment")
