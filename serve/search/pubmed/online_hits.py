"""Hits from PubMed online: its PMIDs looked up in the index, or its records added to the hits."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.index.filters.filters import Filters
from cluster.index.read_shard import Fetched
from cluster.index.vectors import Vectors
from cluster.records import Citation, Entity
from cluster.settings.search_settings import OnlineSettings
from serve.graph.watched_stages import WatchedStages
from serve.search.pubmed.query_by_example import likest, query_by_example, read_solved
from serve.search.pubmed.search_online import find_online, finds_too_little, whole_abstract
from serve.search.rank_exactly import distinct, rank_exactly
from serve.search.rank_hits import Hit, rescored
from serve.search.search_shards import ShardSearch

ORDER_KEPT = "PubMed's order kept"


async def local_passages(
    body: str,
    entities: Sequence[Entity],
    online: OnlineSettings,
    filters: Filters,
    shards: ShardSearch,
    stages: WatchedStages,
) -> list[Hit]:
    """Return this index's passages of the articles PubMed finds, by cosine with the question.

    Paper 000, section 3.2. PMIDs that are not in the index are recorded as a loss. Without the
    encoder, the first passage of each citation is returned in PubMed's order.
    """
    pmids = await _find(body, entities, online, filters, stages)
    fetched = await shards.fetch(pmids, None, count_lost=True)
    if missing := len(pmids) - len(fetched):
        stages.watch.note(f"pubmed: {missing} of {len(pmids)} PMIDs are not in this index")
    fetched = [f for f in fetched if filters.admits(f.citation)]
    vectors = await stages.encode(body, ORDER_KEPT)
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
    stages: WatchedStages,
) -> list[Hit]:
    """Return `hits`; if they are too few, add PubMed's articles, all ranked by cosine.

    Paper 001, section 4.1. The abstract of an article is one passage. If `vector` is None, the
    articles are always added, after the hits and in PubMed's order.
    """
    near = [h.scores["dense"] for h in hits] if vector is not None else []
    if not finds_too_little(near, online.at_least, online.similarity):
        return list(hits)
    held = {h.pmid for h in hits}
    pmids = [p for p in await _find(body, entities, online, filters, stages) if p not in held]
    articles = await stages.fetch_online(pmids) if pmids else []
    fetched = _articles([article for article in articles if filters.admits(article)])
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
    stages: WatchedStages,
) -> list[int]:
    solved = likest(body, read_solved(online.queries), online.examples) if online.examples else []
    return await find_online(
        body,
        entities,
        stages.stages,
        stages.watch,
        limit=online.limit,
        published=(filters.first_day, filters.last_day),
        written=await query_by_example(body, solved, stages.model_of("rewriter")),
        deadline_s=stages.settings.request_deadline_s,
    )


def _articles(citations: Sequence[Citation]) -> list[Fetched]:
    whole = [(citation, whole_abstract(citation)) for citation in citations]
    return [Fetched(c, (p,), (0.0,)) for c, p in whole if p is not None]


async def _rank(
    fetched: Sequence[Fetched], vector: Vectors | None, stages: WatchedStages
) -> list[Hit] | None:
    """Return passage hits ranked and scored by cosine; None if the encoder is lost."""
    passages = distinct([p for f in fetched for p in f.passages])
    if vector is None or not passages:
        return None if passages else []
    vectors = await stages.embed([p.text for p in passages], ORDER_KEPT)
    if vectors is None:
        return None
    ranked = rank_exactly(passages, vectors, vector, len(passages))
    cosines = dict(ranked)
    known = {
        f.citation.pmid: Fetched(f.citation, f.passages, tuple(cosines[p] for p in f.passages))
        for f in fetched
    }
    hits = []
    for passage, cosine in ranked:
        of = known[passage.pmid]
        place = of.passages.index(passage)
        hits.append(Hit(of, place, cosine, {"dense": cosine}, alone=True))
    return hits
