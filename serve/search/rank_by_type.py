"""Fuse rankings, with and without a language model, depending on the question's type.

Paper 003, section 3.4: the type decides which of BM25, BM25LLM and their reranked versions are
fused, and recent years are weighted higher.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from cluster.answers import QuestionType
from cluster.settings.search_settings import AskedType, Ranking, RankingsSettings, RecencySettings
from serve.search.fuse_scores import fuse_rankings, weigh_recency
from serve.search.rank_hits import Hit, rescored

# A question of unknown type is treated as a summary question.
FALLBACK: AskedType = "summary"
# Each first stage and its reranked version.
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
    """Return the fused rankings for a question of type `kind`.

    `find(True)` returns the first stage of the rewritten question, `find(False)` that of the
    original. Each ranking is computed at most once, and only if the type uses it.
    """
    wanted = rankings.by_type[FALLBACK if kind == "unknown" else kind]
    made: dict[Ranking, list[Hit]] = {}
    for first, reranked in STAGES:
        if first in wanted or reranked in wanted:
            made[first] = await find(first == "rewritten")
        if reranked in wanted:
            made[reranked] = await rerank(made[first])
    fused = fuse_rankings([[h.pmid for h in made[name]] for name in wanted], rankings.k)
    # Keep the hit of the last ranking, which has the most scores.
    known = {h.pmid: h for name in wanted for h in made[name]}
    return rescored([known[pmid] for pmid in fused], list(fused.values()))


def recent_first(hits: Sequence[Hit], recency: RecencySettings) -> list[Hit]:
    """Return the hits with their scores weighted by year; unchanged if the weight is 0."""
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
