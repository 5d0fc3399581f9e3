"""Search the index for ranked citations and the passages that may support an answer.

question ─► queries ─► shards (dense + BM25) ─► fuse ─► fetch ─► rerank ─► evidence
            rewrite    or PubMed online                          (repeated if not sure)

See `cluster/settings/search_settings.py` for the steps that a preset can combine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

from cluster.answers import Evidence, SearchResult
from cluster.index.read_shard import Fetched
from cluster.index.terms.collection import Statistics
from cluster.index.tokens.codec import Halves
from cluster.records import Entity
from cluster.settings.search_settings import RerankSettings, RetrieverSettings
from cluster.settings.settings import ServeSettings
from cluster.settings.system_settings import SystemSettings
from serve.graph.stages import Stages
from serve.graph.watch_stages import StageWatch
from serve.graph.watched_stages import WatchedStages
from serve.question.understand_question import Understood
from serve.request import Request
from serve.search.check_confidence import search_until_sure
from serve.search.fuse_scores import fuse
from serve.search.make_queries import Query, entities_of, plain_query, rewritten_queries
from serve.search.pubmed.online_hits import back_off, local_passages
from serve.search.rank_by_type import rank_by_type, recent_first
from serve.search.rank_hits import Hit, citation_hits, one_a_citation, passage_hits, united
from serve.search.rerank_hits import rerank_hits
from serve.search.search_shards import Gathered, ShardSearch, Wanted
from serve.search.whole_citations import whole_of

QUOTED = 2000


def bm25_alone(system: SystemSettings) -> SystemSettings:
    """Return the system without its dense branch, for use when the encoder is lost."""
    limit = max(system.retrieve.bm25, system.retrieve.dense)
    retrieve = system.retrieve.model_copy(update={"dense": 0, "bm25": limit})
    if system.ranks == "passages":
        retrieve = retrieve.model_copy(update={"bm25_over": "passages"})
    fusion = system.fuse.model_copy(update={"dense": 0.0, "bm25": 1.0})
    return system.model_copy(update={"retrieve": retrieve, "fuse": fusion})


def evidence_of(hits: Sequence[Hit], limit: int) -> list[Evidence]:
    """Return the passages of the first `limit` hits that have one and are not retracted."""
    return list(islice((e for e in (h.evidence() for h in hits) if e is not None), limit))


class Searcher:
    """Searches an index; keeps no state between questions.

    `quoted` is the maximum number of characters of passages in a prompt of the search.
    """

    def __init__(self, stages: Stages, settings: ServeSettings, quoted: int = QUOTED) -> None:
        self._stages = stages
        self._settings = settings
        self._quoted = quoted

    async def search(self, request: Request, watch: StageWatch) -> SearchResult:
        """Return the best citations, and the evidence of `system.evidence` hits.

        Raises StageLostError if no shard answers.
        """
        question, system = request.question, request.system
        stages = WatchedStages(self._stages, self._settings, watch, self._quoted)
        shards = ShardSearch(stages)
        one = _QuestionSearch(request, stages, shards)
        hits, evidence = await one.run()
        read = await shards.version()
        return SearchResult(
            question,
            system.name,
            tuple(h.citation() for h in one_a_citation(hits)[: request.limit]),
            tuple(evidence),
            (),
            tuple(entities_of(await one.understanding)),
            tuple(watch.degraded),
            shards.coverage,
            read.version,
            read.last_source,
            dict(watch.timings_ms),
            candidates=one.candidates,
        )


class _QuestionSearch:
    """Search of one question by one system.

    `candidates` has the number of citations that each step of the last search returned.
    """

    def __init__(self, request: Request, stages: WatchedStages, shards: ShardSearch) -> None:
        self._question = request.question
        self._system = system = request.system.for_type(request.question.type)
        self._filters = request.filters
        depths = (system.rerank.depth, system.refine.depth, system.evidence)
        self._wanted = max(request.limit, *depths)
        self._stages = stages
        self._shards = shards
        self.candidates: dict[str, int] = {}
        self.understanding = asyncio.create_task(self._understand())

    async def run(self) -> tuple[list[Hit], list[Evidence]]:
        """Return (hits, best first; evidence)."""
        if self._system.self_check:
            return await self._until_sure()
        hits = await self._ranked(self._question.body)
        evidence = evidence_of(hits, self._system.evidence)
        return hits, evidence + whole_of(hits, evidence, self._system.whole)

    async def _understand(self) -> Understood | None:
        retrieve, named = self._system.retrieve, self._system.expand
        if not named and not retrieve.bm25:
            return None
        return await self._stages.understand(self._question.body, retrieve.bm25_over, named)

    async def _entities(self) -> Sequence[Entity]:
        return entities_of(await self.understanding)

    async def _until_sure(self) -> tuple[list[Hit], list[Evidence]]:
        """Return up to `evidence` new hits of each round, followed by all other hits."""
        every: dict[tuple[int, int | None], Hit] = {}
        shown: dict[tuple[int, int | None], Hit] = {}
        limit = self._system.evidence

        async def search(body: str) -> list[Hit]:
            hits = await self._ranked(body)
            new = [h for h in hits if h.key not in shown][:limit]
            every.update({h.key: h for h in hits if h.key not in every})
            shown.update({h.key: h for h in new})
            return new

        found = await search_until_sure(
            self._question.body,
            search,
            lambda hits: evidence_of(hits, len(hits)),
            self._stages.model,
            self._system.self_check,
            self._system.self_check_tokens,
        )
        rest = [h for key, h in every.items() if key not in shown]
        return found + rest, evidence_of(found, len(found))

    async def _ranked(self, body: str) -> list[Hit]:
        """Return all hits of a question in their final order."""
        system, stages = self._system, self._stages
        if system.online.when == "always":
            entities, wanted = await self._entities(), (system.online, self._filters)
            hits = await local_passages(body, entities, *wanted, self._shards, stages)
            return await self._rerank(hits)
        if system.rankings is not None:
            rankings, kind = system.rankings, self._question.type
            hits = await rank_by_type(kind, rankings, self._find, self._rerank)
        else:
            hits = await self._rerank(await self._first_stage(body))
        return recent_first(hits, system.recency)

    async def _find(self, rewritten: bool) -> list[Hit]:
        body = self._question.body
        if rewritten:
            return await self._first_stage(body)
        query = await plain_query(body, self.understanding, self._system, self._stages)
        return await self._hits(query)

    async def _first_stage(self, body: str) -> list[Hit]:
        queries = await rewritten_queries(body, self.understanding, self._system, self._stages)
        parts = await asyncio.gather(*(self._hits(query) for query in queries))
        hits = united(parts) if len(parts) > 1 else parts[0]
        online = self._system.online
        if online.when == "too-few":
            entities = await self._entities()
            wanted = (online, self._filters)
            hits = await back_off(body, entities, queries[0].vector, hits, *wanted, self._stages)
        return hits

    async def _hits(self, query: Query) -> list[Hit]:
        """Return the shards' hits for one query, in fused order."""
        system = self._system if query.vector is not None else bm25_alone(self._system)
        retrieve, fusion = system.retrieve, system.fuse
        by_passage = system.ranks == "passages"
        wanted = retrieve.dense + retrieve.bm25 if by_passage else self._wanted
        weights, tokens = (fusion.dense, fusion.bm25), await self._tokens()
        asked = Wanted(wanted, weights, tokens, self._filters)
        known = await self._statistics(query, retrieve) if retrieve.bm25 else None
        found = await self._shards.find(query, known, retrieve, asked)
        fused = fuse(found.candidates, retrieve, fusion)
        self._count_found(found, retrieve, min(wanted, len(fused.pmids)))
        fetched = await self._fetched(fused.pmids[:wanted].tolist(), found, query, asked)
        if by_passage:
            return passage_hits(fused, fetched, found.bm25, retrieve, fusion)
        return citation_hits(fused, wanted, fetched)

    def _count_found(self, found: Gathered, retrieve: RetrieverSettings, fused: int) -> None:
        if retrieve.dense:
            self.candidates["dense"] = int(found.candidates.found_dense.sum())
        if retrieve.bm25:
            self.candidates["bm25"] = int(found.candidates.found_bm25.sum())
        self.candidates["fused"] = fused

    async def _statistics(self, query: Query, retrieve: RetrieverSettings) -> Statistics | None:
        """Return the statistics of the query's terms; None if the expander is lost."""
        understood = await self.understanding
        if understood is None:
            # The loss is already recorded; do not wait for the expander again.
            return None
        known, over = understood.statistics, self._system.retrieve.bm25_over
        if over == retrieve.bm25_over and query.weights.keys() <= known.frequencies.keys():
            return known
        return await self._stages.statistics(list(query.weights), retrieve.bm25_over)

    async def _fetched(
        self, pmids: Sequence[int], found: Gathered, query: Query, asked: Wanted
    ) -> list[Fetched]:
        """Return the citations fetched by the search, and fetch the few that are missing."""
        missing = [pmid for pmid in pmids if pmid not in found.fetched]
        later = await self._shards.fetch(missing, query.vector, asked.tokens) if missing else []
        held = {**found.fetched, **{f.citation.pmid: f for f in later}}
        fetched = [held[pmid] for pmid in pmids if pmid in held]
        return [f for f in fetched if not asked.filters or asked.filters.admits(f.citation)]

    def _reranks_late(self, part: RerankSettings) -> bool:
        """Return True if `part` ranks by the shards' late-interaction scores."""
        return bool(part.depth) and part.by == "model" and self._stages.stages.facts.late

    async def _tokens(self) -> Halves | None:
        """Return the question's token vectors if the shards rerank with them, otherwise None."""
        if not any(map(self._reranks_late, (self._system.rerank, self._system.refine))):
            return None
        vectors = await self._stages.encode(self._question.body)
        return vectors.tokens if vectors else None

    async def _rerank(self, hits: Sequence[Hit]) -> list[Hit]:
        reranked, tokens = list(hits), await self._tokens()
        for part in (self._system.rerank, self._system.refine):
            # If the encoder is lost, which is recorded, keep the first-stage order.
            if tokens is not None or not self._reranks_late(part):
                body = self._question.body
                before, reranked = reranked, await rerank_hits(body, reranked, part, self._stages)
                # If the reranker is lost, the hits are returned unchanged.
                if reranked and reranked != before:
                    head = one_a_citation(reranked[: part.depth])
                    self.candidates[f"reranked by {part.by}"] = len(head)
        return reranked
