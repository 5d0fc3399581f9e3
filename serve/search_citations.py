"""From a question to ranked citations and the passages that may support an answer.

entities ┐
vector   ├─► shards search (dense + BM25) ─► fuse ─► fetch ─► rerank ─► evidence
document frequencies ┘
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cluster.index.analysis import analyse
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
from cluster.records import Entity, Evidence, Question, RankedCitation, SearchResult
from cluster.settings import ServeSettings, SystemSettings
from serve.expand_question import expansion_terms
from serve.fuse_scores import Fused, fuse, rerank_order
from serve.read_version import FromVersion, oldest
from serve.stages import IndexFacts, Stages
from serve.watch_stages import StageLostError, StageWatch

# An unusually long question costs no more than this many terms.
MAX_QUERY_TERMS = 64


def best_passage(fetched: Fetched) -> int | None:
    """The passage nearest to the question; one of the abstract where there is one."""
    passages = fetched.passages
    if not passages:
        return None
    abstract = [i for i, p in enumerate(passages) if p.section == "abstract"]
    return max(abstract or range(len(passages)), key=lambda i: (fetched.dense[i], -i))


def rerank_text(fetched: Fetched) -> str:
    """The title and the best passage: what a cross-encoder reads of a citation."""
    best = best_passage(fetched)
    citation = fetched.citation
    parts = [citation.title] if citation.has_title else []
    if best is not None and fetched.passages[best].section == "abstract":
        parts.append(fetched.passages[best].text)
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A fetched citation with its place in the order so far."""

    fetched: Fetched
    score: float
    scores: dict[str, float]

    def citation(self) -> RankedCitation:
        c = self.fetched.citation
        return RankedCitation(c.pmid, self.score, self.scores, c.title, c.year, c.retracted)

    def evidence(self) -> Evidence | None:
        best = best_passage(self.fetched)
        if best is None:
            return None
        c = self.fetched.citation
        scores = {**self.scores, "passage": self.fetched.dense[best], "score": self.score}
        return Evidence(self.fetched.passages[best], scores, c.title, c.year, c.retracted)


def query_weights(question: str, synonyms: Sequence[str], weight: float) -> dict[str, float]:
    """BM25 terms of the question by how often they occur, and of its synonyms by `weight`."""
    weights: dict[str, float] = dict(Counter(analyse(question)))
    if weight > 0:
        for term in analyse(" ".join(synonyms)):
            weights.setdefault(term, weight)
    return dict(list(weights.items())[:MAX_QUERY_TERMS])


def bm25_alone(system: SystemSettings) -> SystemSettings:
    """The system without its dense branch, for when the encoder is lost."""
    limit = max(system.retrieve.bm25, system.retrieve.dense)
    retrieve = system.retrieve.model_copy(update={"dense": 0, "bm25": limit})
    fusion = system.fuse.model_copy(update={"dense": 0.0, "bm25": 1.0})
    return system.model_copy(update={"retrieve": retrieve, "fuse": fusion})


def _rank(fused: Fused, wanted: int, fetched: Sequence[Fetched]) -> list[_Ranked]:
    """The first `wanted` of `fused` that could be fetched, in their order."""
    held = {f.citation.pmid: f for f in fetched}
    rows = zip(fused.pmids[:wanted].tolist(), fused.score, fused.dense, fused.bm25, strict=False)
    return [
        _Ranked(
            held[pmid],
            float(score),
            {"fused": float(score), "dense": float(dense), "bm25": float(bm25)},
        )
        for pmid, score, dense, bm25 in rows
        if pmid in held
    ]


class Searcher:
    """Searches the shards of an index; holds no state between questions."""

    def __init__(self, stages: Stages, facts: IndexFacts, settings: ServeSettings) -> None:
        self._stages = stages
        self._facts = facts
        self._settings = settings

    async def search(
        self, question: Question, system: SystemSettings, limit: int, watch: StageWatch
    ) -> SearchResult:
        """The best `limit` citations and the evidence of `system.evidence` of them.

        Raises StageLostError when no shard answers.
        """
        entities, vector = await asyncio.gather(
            self._entities(question, system, watch), self._encode(question, system, watch)
        )
        if vector is None:
            system = bm25_alone(system)
        found = await self._search_shards(question, system, entities, vector, watch)
        candidates = join_candidates([part.value for part in found])
        fused = fuse(candidates, system.retrieve, system.fuse)
        wanted = max(limit, system.rerank.depth, system.evidence)
        parts = await self._fetch(fused, wanted, vector, watch)
        read = oldest([part.read for part in found] + [part.read for part in parts])
        ranked = _rank(fused, wanted, [f for part in parts for f in part.value])
        ranked = await self._rerank(question, ranked, system, watch)
        live = [r for r in ranked if not r.fetched.citation.retracted]
        evidence = [r.evidence() for r in live[: system.evidence]]
        return SearchResult(
            question,
            system.name,
            tuple(r.citation() for r in ranked[:limit]),
            tuple(e for e in evidence if e is not None),
            (),
            tuple(entities),
            tuple(watch.degraded),
            f"{len(found)}/{self._facts.shards}",
            read.version,
            read.last_source,
            dict(watch.timings_ms),
        )

    async def _entities(
        self, question: Question, system: SystemSettings, watch: StageWatch
    ) -> list[Entity]:
        if not system.expand:
            return []
        deadline = self._settings.expander.deadline_s
        work = self._stages.entities(question.body)
        return await watch.run("expand", work, deadline, "question not expanded") or []

    async def _encode(
        self, question: Question, system: SystemSettings, watch: StageWatch
    ) -> Vectors | None:
        work = self._stages.encode(question.body)
        return await watch.run("encode", work, self._settings.encoder.deadline_s, "BM25 only")

    async def _bm25_query(
        self,
        question: Question,
        system: SystemSettings,
        entities: Sequence[Entity],
        watch: StageWatch,
    ) -> tuple[Bm25Query, set[int]]:
        """The query with the statistics of all shards that answer, and which do not.

        Each shard tells those of the version that it reads.
        """
        synonyms = expansion_terms(question.body, entities) if system.expansion_weight else []
        weights = query_weights(question.body, synonyms, system.expansion_weight)
        over = system.retrieve.bm25_over
        counts = await asyncio.gather(
            *(
                watch.run(
                    "statistics",
                    shard.statistics(list(weights), over),
                    self._settings.shard.deadline_s,
                    f"shard {number} left out",
                )
                for number, shard in enumerate(self._stages.shards)
            )
        )
        counted = [count for count in counts if count is not None]
        total: Counter[str] = Counter()
        for count in counted:
            total.update(count.frequencies)
        units = sum(count.units for count in counted)
        mean_terms = sum(count.terms for count in counted) / max(units, 1)
        facts = self._facts
        lost = {number for number, count in enumerate(counts) if count is None}
        return Bm25Query(weights, dict(total), units, mean_terms, facts.k1, facts.b), lost

    async def _search_shards(
        self,
        question: Question,
        system: SystemSettings,
        entities: Sequence[Entity],
        vector: Vectors | None,
        watch: StageWatch,
    ) -> list[FromVersion[Candidates]]:
        """The candidates of each shard that answered; raises StageLostError when none did."""
        retrieve = system.retrieve
        bm25, lost = None, set[int]()
        if retrieve.bm25:
            # One that has let its deadline pass is not waited for a second time.
            bm25, lost = await self._bm25_query(question, system, entities, watch)
        query = ShardQuery(
            vector if retrieve.dense else None,
            bm25,
            limit_of_shard(retrieve.dense, self._facts.shards),
            limit_of_shard(retrieve.bm25, self._facts.shards),
            retrieve.bm25_over,
        )
        answers = await asyncio.gather(
            *(
                watch.run(
                    "retrieve",
                    shard.search(query),
                    self._settings.shard.deadline_s,
                    f"shard {number} left out",
                )
                for number, shard in enumerate(self._stages.shards)
                if number not in lost
            )
        )
        found = [a for a in answers if a is not None]
        if not found:
            raise StageLostError("no shard of the index answered; try again in a moment")
        return found

    async def _fetch(
        self, fused: Fused, wanted: int, vector: Vectors | None, watch: StageWatch
    ) -> list[FromVersion[list[Fetched]]]:
        """The first `wanted` of `fused`, from each shard that answered."""
        by_shard: dict[int, list[int]] = {}
        for pmid in fused.pmids[:wanted].tolist():
            by_shard.setdefault(shard_of(pmid, self._facts.shards), []).append(pmid)
        parts = await asyncio.gather(
            *(
                watch.run(
                    "fetch",
                    self._stages.shards[number].fetch(pmids, vector),
                    self._settings.shard.deadline_s,
                    f"shard {number} left out",
                )
                for number, pmids in by_shard.items()
            )
        )
        return [part for part in parts if part is not None]

    async def _rerank(
        self,
        question: Question,
        ranked: list[_Ranked],
        system: SystemSettings,
        watch: StageWatch,
    ) -> list[_Ranked]:
        """The head reranked, then the tail as it was, its scores below the head's."""
        head, tail = ranked[: system.rerank.depth], ranked[system.rerank.depth :]
        if not head:
            return ranked
        scores = await watch.run(
            "rerank",
            self._stages.rerank(question.body, [rerank_text(r.fetched) for r in head]),
            self._settings.reranker.deadline_s,
            "first-stage order kept",
        )
        if scores is None:
            return ranked
        mixed = rerank_order([r.score for r in head], scores.tolist(), system.rerank.weight)
        head = [
            replace(r, score=m, scores={**r.scores, "rerank": float(s)})
            for r, m, s in zip(head, mixed, scores, strict=True)
        ]
        head.sort(key=lambda r: (-r.score, r.fetched.citation.pmid))
        lowest = head[-1].score
        return head + [replace(r, score=min(r.score, lowest) * 0.999) for r in tail]
