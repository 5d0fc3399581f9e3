"""Rankings with and without the language model's help, fused by the question's type.

Paper 003, section 3.4: which of BM25, BM25LLM and each of them reranked are fused depends on
the type, and recent years weigh more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from cluster.answers import QuestionType
from cluster.settings.search_settings import AskedType, Ranking, RankingsSettings, RecencySettings
from serve.search.fuse_scores import fuse_rankings, weigh_recency
from serve.search.rank_hits import Hit, rescored

# A question that fits no type is asked as one that wants a summary.
FALLBACK: AskedType = "summary"
# Each first stage with itself after the reranker.
STAGES: tuple[tuple[Ranking, Ranking], ...] = (
    ("plain", "plain-reranked"),
    ("rewritten", "rewritten-reranked"),
)


async def rank_by_type(
    kind: QuestionType,
    rankings: RankingsSettings,
    find: Callable[[bool], Awaitable[list[Hit]]],
    rerank: Callable[[Sequence[Hit]], Awaitable[list[Hit]]],
) -> list[Hit]:
    """The fused rankings of questions of type `kind`.

    `find` gives the first stage, of the rewritten question where it is told True. Each
    ranking is made once, and only where the type wants it.
    """
    wanted = rankings.by_type[FALLBACK if kind == "unknown" else kind]
    made: dict[Ranking, list[Hit]] = {}
    for first, reranked in STAGES:
        if first in wanted or reranked in wanted:
            made[first] = await find(first == "rewritten")
        if reranked in wanted:
            made[reranked] = await rerank(made[first])
    fused = fuse_rankings([[h.pmid for h in made[name]] for name in wanted], rankings.k)
    # The hit of the last ranking is the one that knows most of its scores.
    known = {h.pmid: h for name in wanted for h in made[name]}
    return rescored([known[pmid] for pmid in fused], list(fused.values()))


def recent_first(hits: Sequence[Hit], recency: RecencySettings) -> list[Hit]:
    """The hits with their scores weighed by year; as they are where the weight is 0."""
    if not recency.weight:
        return list(hits)
    known = {h.pmid: h for h in hits}
    weighed = weigh_recency(
        {h.pmid: h.score for h in hits},
        {h.pmid: h.fetched.citation.year for h in hits},
        recency.weight,
        recency.half_life,
    )
    return rescored([known[pmid] for pmid in weighed], list(weighed.values()))
