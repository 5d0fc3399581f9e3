"""Search PubMed online, and take the passages from the index or from PubMed's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.index.filters.filters import Filters
from cluster.index.read_shard import Fetched
from cluster.index.vectors import Vectors
from cluster.records import Entity
from cluster.settings.search_settings import OnlineSettings
from serve.contracts.stage_calls import StageCalls
from serve.search.encoder_stage import EMBED, ENCODE
from serve.search.pubmed.query_by_example import most_similar, query_by_example, read_solved
from serve.search.pubmed.search_online import FETCH_ONLINE, find_online, whole_abstract
from serve.search.rank_hits import Hit, rescored
from serve.search.search_shards import ShardSearch

ORDER_KEPT = "PubMed's order kept"


@dataclass(frozen=True, slots=True)
class OnlineSearch:
    """Search of PubMed for a question that has the text `body` and names `entities`."""

    body: str
    entities: Sequence[Entity]
    online: OnlineSettings
    filters: Filters
    stages: StageCalls

    async def local_passages(self, shards: ShardSearch) -> list[Hit]:
        """Return passages in this index of the articles that PubMed finds, ranked by cosine.

        Paper 000, section 3.2. The number of PMIDs that are not in the index is noted in
        `degraded`. If the encoder fails, the first passage of each citation is returned in
        PubMed's order.
        """
        pmids = await self._find()
        fetched = await shards.fetch(pmids, None, count_lost=True)
        if missing := len(pmids) - len(fetched):
            self.stages.watch.note(f"pubmed: {missing} of {len(pmids)} PMIDs are not in this index")
        fetched = [f for f in fetched if self.filters.admits(f.citation)]
        vectors = await self.stages.once(ENCODE.with_loss(ORDER_KEPT), self.body)
        ranked = await self._rank(fetched, vectors.vector if vectors else None)
        if ranked is None:
            firsts = [
                Hit(f, next(iter(f.abstract_first()), None), 0.0, {}, alone=True) for f in fetched
            ]
            return rescored(firsts, [1 / rank for rank in range(1, len(firsts) + 1)])
        return rescored(ranked, [h.score for h in ranked])

    async def back_off(self, vector: Vectors | None, hits: Sequence[Hit]) -> list[Hit]:
        """Return `hits`; if too few are similar, add PubMed's articles, all ranked by cosine.

        Paper 001, section 4.1, backs off "if the vector search yields insufficient results" and
        gives no threshold. The abstract of an article is one passage. If `vector` is None, the
        articles are always added, after the hits and in PubMed's order.
        """
        if vector is not None:
            similar = [h for h in hits if h.scores["dense"] >= self.online.similarity]
            if len(similar) >= self.online.at_least:
                return list(hits)
        held = {h.pmid for h in hits}
        pmids = [pmid for pmid in await self._find() if pmid not in held]
        articles = (await self.stages.call(FETCH_ONLINE, pmids) or []) if pmids else []
        admitted = [article for article in articles if self.filters.admits(article)]
        fetched = [
            Fetched(a, (p,), (0.0,)) for a in admitted if (p := whole_abstract(a)) is not None
        ]
        if not fetched:
            return list(hits)
        ranked = await self._rank(fetched, vector)
        if ranked is None:
            lowest = min((h.score for h in hits), default=1.0)
            late = [Hit(f, 0, lowest * 0.999, {}, alone=True) for f in fetched]
            return [*hits, *late]
        every = sorted([*hits, *ranked], key=lambda h: (-h.scores["dense"], h.pmid, h.place or 0))
        return rescored(every, [h.scores["dense"] for h in every])

    async def _find(self) -> list[int]:
        online = self.online
        solved = read_solved(online.queries) if online.examples else []
        similar = most_similar(self.body, solved, online.examples)
        return await find_online(
            self.body,
            self.entities,
            self.stages,
            limit=online.limit,
            published=(self.filters.first_day, self.filters.last_day),
            written=await query_by_example(self.body, similar, self.stages.model_of("rewriter")),
        )

    async def _rank(self, fetched: Sequence[Fetched], vector: Vectors | None) -> list[Hit] | None:
        """Return passage hits ranked and scored by cosine; None if the encoder fails."""
        passages = list(dict.fromkeys(p for f in fetched for p in f.passages))
        if vector is None or not passages:
            return None if passages else []
        vectors = await self.stages.call(EMBED.with_loss(ORDER_KEPT), [p.text for p in passages])
        if vectors is None:
            return None
        cosines = dict(zip(passages, (vectors @ vector).tolist(), strict=True))
        hits = []
        for found in fetched:
            own = tuple(cosines[p] for p in found.passages)
            scored = Fetched(found.citation, found.passages, own)
            hits += [Hit(scored, n, c, {"dense": c}, alone=True) for n, c in enumerate(own)]
        return sorted(hits, key=lambda hit: -hit.score)
