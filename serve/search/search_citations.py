"""Search the index for ranked citations and the passages that may support an answer.

question ─► queries ─► shards (dense + BM25) ─► fuse ─► fetch ─► rerank ─► evidence
            rewrite    or PubMed online                          (repeated if not sure)

See `cluster/settings/search_settings.py` for the steps that a preset can combine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from cluster.answers import Evidence, SearchResult
from cluster.errors import InputError
from cluster.index.read_shard import Fetched, ShardQuery
from cluster.index.terms.collection import Statistics
from cluster.index.tokens.codec import Halves
from cluster.records import Entity
from cluster.settings.search_settings import Ranking, RerankSettings, RetrieverSettings
from cluster.settings.system_settings import SystemSettings
from serve.contracts.request import Request
from serve.contracts.stage_calls import StageCalls
from serve.question.understand_question import STATISTICS, UNDERSTAND, Understood
from serve.search.check_confidence import search_until_sure
from serve.search.encoder_stage import ENCODE
from serve.search.fuse_scores import fuse
from serve.search.make_queries import Query, QueryMaker, entities_of
from serve.search.pubmed.online_hits import OnlineSearch
from serve.search.rank_by_type import (
    DEFAULT_RANKINGS,
    RANKINGS,
    fuse_hits,
    rankings_for,
    recent_first,
)
from serve.search.rank_hits import Hit, citation_hits, first_per_citation, merge_hits, passage_hits
from serve.search.rerank_hits import rerank_hits
from serve.search.search_shards import Gathered, ShardSearch
from serve.search.whole_citations import rest_of_citations

QUOTED = 2000


def bm25_alone(system: SystemSettings) -> SystemSettings:
    """Return the system without its dense branch, for use when the encoder fails."""
    limit = max(system.retrieve.bm25, system.retrieve.dense)
    retrieve = system.retrieve.model_copy(update={"dense": 0, "bm25": limit})
    if system.ranks == "passages":
        retrieve = retrieve.model_copy(update={"bm25_over": "passages"})
    fusion = system.fuse.model_copy(update={"dense": 0.0, "bm25": 1.0})
    return system.model_copy(update={"retrieve": retrieve, "fuse": fusion})


def evidence_of(hits: Sequence[Hit], limit: int) -> list[Evidence]:
    """Return the passages of the first `limit` hits that have one and are not retracted."""
    return list(islice((e for e in (h.evidence() for h in hits) if e is not None), limit))


def exclude_citations(
    found: SearchResult, exclude: Sequence[int], limit: int, evidence: int
) -> SearchResult:
    """Return `found` without the citations in `exclude`, cut to `limit` citations.

    It keeps the first `evidence` passages, and all further passages of the same citations.
    """
    gone = frozenset(exclude)
    citations = [c for c in found.citations if c.pmid not in gone]
    passages = [e for e in found.evidence if e.passage.pmid not in gone]
    kept = passages[:evidence]
    held = {e.passage.pmid for e in kept}
    rest = (e for e in passages[evidence:] if e.passage.pmid in held)
    return replace(found, citations=tuple(citations[:limit]), evidence=(*kept, *rest))


def drop_weak_evidence(evidence: Sequence[Evidence], share: float) -> tuple[Evidence, ...]:
    """Return the evidence that scores at least `share` of the best score, in order."""
    best = max((item.scores["score"] for item in evidence), default=0.0)
    return tuple(item for item in evidence if not share or item.scores["score"] >= share * best)


async def search_citations(request: Request, stages: StageCalls) -> SearchResult:
    """Return the best citations, and the evidence of `system.evidence` hits, without exclusions.

    Raises StageLostError if no shard answers, and InputError if the index lacks the BM25 index that
    the system searches.
    """
    exclude, system = request.question.exclude, request.system
    _check_bm25(system, stages)
    # The excluded citations are searched too, and left out of the result.
    evidence_limit = system.evidence + len(exclude)
    wider = system.model_copy(update={"evidence": evidence_limit})
    asked = replace(request, system=wider, limit=request.limit + len(exclude))
    search = _QuestionSearch(asked, stages)
    if system.self_check:
        hits, evidence = await search.search_until_sure()
    else:
        hits = await search.rank(request.question.body)
        evidence = evidence_of(hits, evidence_limit)
        evidence += rest_of_citations(hits, evidence, system.whole)
    read = await search.shards.version()
    found = SearchResult(
        question=request.question,
        system=request.system.name,
        citations=tuple(h.citation() for h in first_per_citation(hits)[: asked.limit]),
        evidence=tuple(evidence),
        snippets=(),
        entities=tuple(await search.entities()),
        degraded=tuple(stages.watch.degraded),
        coverage=search.shards.coverage,
        index_version=read.version,
        last_source=read.last_source,
        index_date=read.date,
        timings_ms=dict(stages.watch.timings_ms),
        candidates=search.candidates,
    )
    if exclude:
        found = exclude_citations(found, exclude, request.limit, system.evidence)
    return replace(found, evidence=drop_weak_evidence(found.evidence, system.evidence_share))


def _check_bm25(system: SystemSettings, stages: StageCalls) -> None:
    over = system.retrieve.bm25_over
    if system.retrieve.bm25 and over not in stages.facts.bm25_over:
        raise InputError(
            f"system {system.name}: searches BM25 over {over}, which the index lacks; name another "
            "preset, or build the index again with index.bm25_over=[citations,passages]"
        )


class _QuestionSearch:
    """Search of one question by one system.

    `candidates` has the number of citations that each step of the last search returned.
    """

    def __init__(self, request: Request, stages: StageCalls) -> None:
        self._question = request.question
        self.system = system = request.system.for_type(request.question.type)
        self._filters = request.filters
        depths = (system.rerank.depth, system.refine.depth, system.evidence)
        self._wanted = max(request.limit, *depths)
        self._stages = stages
        self.shards = ShardSearch(stages)
        self.candidates: dict[str, int] = {}
        self._understanding = asyncio.create_task(self._understand())
        self._query_maker = QueryMaker(self._understanding, system, stages)

    async def _understand(self) -> Understood | None:
        retrieve, named = self.system.retrieve, self.system.expand
        if not named and not retrieve.bm25:
            return None
        asked = (self._question.body, retrieve.bm25_over, named)
        return await self._stages.call(UNDERSTAND, *asked)

    async def entities(self) -> Sequence[Entity]:
        """Return the question's entities; empty if the expander fails or is not needed."""
        return entities_of(await self._understanding)

    async def search_until_sure(self) -> tuple[list[Hit], list[Evidence]]:
        """Return up to `evidence` new hits of each round, followed by all other hits."""
        every: dict[tuple[int, int | None], Hit] = {}
        shown: dict[tuple[int, int | None], Hit] = {}
        limit = self.system.evidence

        async def search(body: str) -> list[Hit]:
            hits = await self.rank(body)
            new = [h for h in hits if h.key not in shown][:limit]
            every.update({h.key: h for h in hits if h.key not in every})
            shown.update({h.key: h for h in new})
            return new

        found = await search_until_sure(
            self._question.body,
            search,
            lambda hits: evidence_of(hits, len(hits)),
            self._stages.model,
            self.system.self_check,
            self.system.self_check_tokens,
        )
        rest = [h for key, h in every.items() if key not in shown]
        return found + rest, evidence_of(found, len(found))

    async def rank(self, body: str) -> list[Hit]:
        """Return all hits of a question in their final order."""
        system = self.system
        if system.online.when == "always":
            online = await self._online(body)
            return await self._rerank(await online.local_passages(self.shards))
        if system.rankings is None:
            wanted = DEFAULT_RANKINGS
        else:
            wanted = rankings_for(self._question.type, system.rankings)
        made: dict[Ranking, list[Hit]] = {}
        for first, reranked in RANKINGS:
            if first not in wanted and reranked not in wanted:
                continue
            rewritten = first == "rewritten"
            make = self._query_maker
            queries = await make.rewritten(body) if rewritten else [await make.plain(body)]
            parts = await asyncio.gather(*(self._hits(query) for query in queries))
            hits = merge_hits(parts) if len(parts) > 1 else parts[0]
            if rewritten and system.online.when == "too-few":
                online = await self._online(body)
                hits = await online.back_off(queries[0].vector, hits)
            made[first] = hits
            if reranked in wanted:
                made[reranked] = await self._rerank(hits)
        if system.rankings is None:
            hits = made[wanted[0]]
        else:
            hits = fuse_hits([made[name] for name in wanted], system.rankings.k)
        return recent_first(hits, system.recency)

    async def _online(self, body: str) -> OnlineSearch:
        entities = await self.entities()
        return OnlineSearch(body, entities, self.system.online, self._filters, self._stages)

    async def _hits(self, query: Query) -> list[Hit]:
        """Return the shards' hits for one query, in fused order."""
        system = self.system if query.vector is not None else bm25_alone(self.system)
        retrieve, fusion = system.retrieve, system.fuse
        by_passage = system.ranks == "passages"
        wanted = retrieve.dense + retrieve.bm25 if by_passage else self._wanted
        tokens = await self._tokens()
        known = await self._statistics(query, retrieve) if retrieve.bm25 else None
        asked = self.shards.shard_query(
            query,
            known,
            retrieve,
            citations=wanted,
            weights=(fusion.dense, fusion.bm25),
            tokens=tokens,
            filters=self._filters,
        )
        found = self.shards.gather(await self.shards.find(asked))
        fused = fuse(found.candidates, retrieve, fusion)
        self._count_found(found, retrieve, min(wanted, len(fused.pmids)))
        fetched = await self._fetched(fused.pmids[:wanted].tolist(), found, query, asked)
        if by_passage:
            analyser = self._stages.facts.analyser
            return passage_hits(fused, fetched, asked.bm25, retrieve, fusion, analyser)
        return citation_hits(fused, wanted, fetched)

    def _count_found(self, found: Gathered, retrieve: RetrieverSettings, fused: int) -> None:
        if retrieve.dense:
            self.candidates["dense"] = int(found.candidates.found_dense.sum())
        if retrieve.bm25:
            self.candidates["bm25"] = int(found.candidates.found_bm25.sum())
        self.candidates["fused"] = fused

    async def _statistics(self, query: Query, retrieve: RetrieverSettings) -> Statistics | None:
        """Return the statistics of the query's terms; None if the expander fails."""
        understood = await self._understanding
        if understood is None:
            # The failure is already recorded; do not wait for the expander again.
            return None
        known, over = understood.statistics, self.system.retrieve.bm25_over
        if over == retrieve.bm25_over and query.weights.keys() <= known.frequencies.keys():
            return known
        return await self._stages.call(STATISTICS, list(query.weights), retrieve.bm25_over)

    async def _fetched(
        self, pmids: Sequence[int], found: Gathered, query: Query, asked: ShardQuery
    ) -> list[Fetched]:
        """Return the citations fetched by the search, and fetch the few that are missing."""
        missing = [pmid for pmid in pmids if pmid not in found.fetched]
        later = await self.shards.fetch(missing, query.vector, asked.tokens) if missing else []
        held = {**found.fetched, **{f.citation.pmid: f for f in later}}
        fetched = [held[pmid] for pmid in pmids if pmid in held]
        return [f for f in fetched if not asked.filters or asked.filters.admits(f.citation)]

    def _reranks_late(self, part: RerankSettings) -> bool:
        """Return True if `part` ranks by the shards' late-interaction scores."""
        return bool(part.depth) and part.by == "model" and self._stages.facts.late

    async def _tokens(self) -> Halves | None:
        """Return the question's token vectors if the shards rerank with them, otherwise None."""
        if not any(map(self._reranks_late, (self.system.rerank, self.system.refine))):
            return None
        vectors = await self._stages.once(ENCODE, self._question.body)
        return vectors.tokens if vectors else None

    async def _rerank(self, hits: Sequence[Hit]) -> list[Hit]:
        reranked, tokens = list(hits), await self._tokens()
        for part in (self.system.rerank, self.system.refine):
            # If the encoder failed, which is recorded, keep the first-stage order.
            if tokens is not None or not self._reranks_late(part):
                body = self._question.body
                before, reranked = reranked, await rerank_hits(body, reranked, part, self._stages)
                # If the reranker failed, the hits are returned unchanged.
                if reranked and reranked != before:
                    head = first_per_citation(reranked[: part.depth])
                    self.candidates[f"reranked by {part.by}"] = len(head)
        return reranked
