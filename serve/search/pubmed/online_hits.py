"""Search PubMed online, and take the passages from the index or from PubMed's records."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.index.filters.filters import Filters
from cluster.index.read_shard import Fetched
from cluster.index.vectors import Vectors
from cluster.records import Entity
from cluster.settings.search_settings import OnlineSettings
from serve.contracts.stage_calls import StageCalls
from serve.search.encoder_stage import EMBED, ENCODE
from serve.search.pubmed.query_by_example import most_similar, query_by_example, read_solved
from serve.search.pubmed.search_online import (
    FETCH_ONLINE,
    find_online,
    whole_abstract,
)
from serve.search.rank_hits import Hit, rescored
from serve.search.search_shards import ShardSearch

ORDER_KEPT = "PubMed's order kept"


async def local_passages(
    body: str,
    entities: Sequence[Entity],
    online: OnlineSettings,
    filters: Filters,
    shards: ShardSearch,
    stages: StageCalls,
) -> list[Hit]:
    """Return passages in this index of the articles that PubMed finds, ranked by cosine.

    Paper 000, section 3.2. The number of PMIDs that are not in the index is noted in `degraded`. If
    the encoder fails, the first passage of each citation is returned in PubMed's order.
    """
    pmids = await _find(body, entities, online, filters, stages)
    fetched = await shards.fetch(pmids, None, count_lost=True)
    if missing := len(pmids) - len(fetched):
        stages.watch.note(f"pubmed: {missing} of {len(pmids)} PMIDs are not in this index")
    fetched = [f for f in fetched if filters.admits(f.citation)]
    vectors = await stages.once(ENCODE.with_loss(ORDER_KEPT), body)
    ranked = await _rank(fetched, vectors.vector if vectors else None, stages)
    if ranked is None:
        firsts = [
            Hit(f, next(iter(f.abstract_first()), None), 0.0, {}, alone=True) for f in fetched
        ]
        return rescored(firsts, [1 / rank for rank in range(1, len(firsts) + 1)])
    return rescored(ranked, [h.score for h in ranked])


async def back_off(
    body: str,
    entities: Sequence[Entity],
    vector: Vectors | None,
    hits: Sequence[Hit],
    online: OnlineSettings,
    filters: Filters,
    stages: StageCalls,
) -> list[Hit]:
    """Return `hits`; if too few are similar, add PubMed's articles, all ranked by cosine.

    Paper 001, section 4.1, backs off "if the vector search yields insufficient results" and gives
    no threshold. The abstract of an article is one passage. If `vector` is None, the
    articles are always added, after the hits and in PubMed's order.
    """
    if vector is not None:
        similar = [h for h in hits if h.scores["dense"] >= online.similarity]
        if len(similar) >= online.at_least:
            return list(hits)
    held = {h.pmid for h in hits}
    pmids = [p for p in await _find(body, entities, online, filters, stages) if p not in held]
    articles = (await stages.call(FETCH_ONLINE, pmids) or []) if pmids else []
    admitted = [article for article in articles if filters.admits(article)]
    fetched = [Fetched(a, (p,), (0.0,)) for a in admitted if (p := whole_abstract(a)) is not None]
    if not fetched:
        return list(hits)
    ranked = await _rank(fetched, vector, stages)
    if ranked is None:
        lowest = min((h.score for h in hits), default=1.0)
        late = [Hit(f, 0, lowest * 0.999, {}, alone=True) for f in fetched]
        return [*hits, *late]
    every = sorted([*hits, *ranked], key=lambda h: (-h.scores["dense"], h.pmid, h.place or 0))
    return rescored(every, [h.scores["dense"] for h in every])


async def _find(
    body: str,
    entities: Sequence[Entity],
    online: OnlineSettings,
    filters: Filters,
    stages: StageCalls,
) -> list[int]:
    solved = (
        most_similar(body, read_solved(online.queries), online.examples) if online.examples else []
    )
    return await find_online(
        body,
        entities,
        stages,
        limit=online.limit,
        published=(filters.first_day, filters.last_day),
        written=await query_by_example(body, solved, stages.model_of("rewriter")),
    )


async def _rank(
    fetched: Sequence[Fetched], vector: Vectors | None, stages: StageCalls
) -> list[Hit] | None:
    """Return passage hits ranked and scored by cosine; None if the encoder fails."""
    passages = list(dict.fromkeys(p for f in fetched for p in f.passages))
    if vector is None or not passages:
        return None if passages else []
    vectors = await stages.call(EMBED.with_loss(ORDER_KEPT), [p.text for p in passages])
    if vectors is None:
        return None
    cosines = dict(zip(passages, (vectors @ vector).tolist(), strict=True))
    hits = []
    for found in fetched:
        own = tuple(cosines[p] for p in found.passages)
        scored = Fetched(found.citation, found.passages, own)
        hits += [Hit(scored, n, c, {"dense": c}, alone=True) for n, c in enumerate(own)]
    return sorted(hits, key=lambda hit: -hit.score)
