"""Rankings with and without a language model that are fused by the type of the question.

Paper 003, section 3.4: the type decides which of BM25, BM25LLM and their reranked versions are
fused, and recent years are weighted higher.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.answers import QuestionType
from cluster.settings.search_settings import AskedType, Ranking, RankingsSettings, RecencySettings
from serve.search.fuse_scores import fuse_rankings
from serve.search.rank_hits import Hit, rescored

# A question of unknown type is treated as a summary question.
FALLBACK: AskedType = "summary"
# Pairs of a first-stage ranking and its reranked version.
RANKINGS: tuple[tuple[Ranking, Ranking], ...] = (
    ("plain", "plain-reranked"),
    ("rewritten", "rewritten-reranked"),
)
# Ranking of systems that do not fuse several rankings.
DEFAULT_RANKINGS: tuple[Ranking, ...] = ("rewritten-reranked",)


def rankings_for(kind: QuestionType, rankings: RankingsSettings) -> tuple[Ranking, ...]:
    """Return the names of the rankings to fuse for a question of type `kind`."""
    return rankings.by_type[FALLBACK if kind == "unknown" else kind]


def fuse_hits(rankings: Sequence[Sequence[Hit]], k: float) -> list[Hit]:
    """Fuse rankings by reciprocal rank; of equal PMIDs, the hit of the last ranking is kept."""
    fused = fuse_rankings([[h.pmid for h in hits] for hits in rankings], k)
    known = {h.pmid: h for hits in rankings for h in hits}
    return rescored([known[pmid] for pmid in fused], list(fused.values()))


def recent_first(hits: Sequence[Hit], recency: RecencySettings) -> list[Hit]:
    """Multiply scores by 1 + `weight` * 2^(-age / `half_life`) and return the hits, best first.

    Age and half-life are in years. Age is relative to the newest hit, so that results do not
    depend on the current date. Paper 003, section 3.4, weights recent years higher and gives no
    formula. Scores of citations without a year are unchanged. Ties go to the lower PMID. With a
    weight of 0 the hits are returned in their order.
    """
    if not recency.weight:
        return list(hits)
    years = [h.fetched.citation.year for h in hits]
    newest = max((year for year in years if year is not None), default=0)
    scores = [
        h.score
        if year is None
        else h.score * (1 + recency.weight * 0.5 ** ((newest - year) / recency.half_life))
        for h, year in zip(hits, years, strict=True)
    ]
    weighed = sorted(zip(scores, hits, strict=True), key=lambda each: (-each[0], each[1].pmid))
    return rescored([h for _, h in weighed], [score for score, _ in weighed])
