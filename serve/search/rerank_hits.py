"""Rerank the head of a ranking, by a model or by pseudo-relevance feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cluster.settings.search_settings import RerankSettings
from serve.contracts.stage_calls import StageCalls, stage_method
from serve.search.encoder_stage import RERANK
from serve.search.fuse_scores import rerank_order, scaled
from serve.search.rank_hits import Hit
from serve.search.rerank_by_llm import rerank_listwise, rerank_pointwise


class PassageReader(Protocol):
    """Interface of the writer stage for reranking: it scores texts with the reader model."""

    async def answering(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return how well each text answers the question, 0 to 1, of shape (n,)."""
        ...


ANSWERING = stage_method(
    "writer",
    PassageReader.answering,
    "read",
    "ranked without the reader",
    limit="reranker",
    spare=True,
)


async def rerank_hits(
    question: str, hits: Sequence[Hit], rerank: RerankSettings, stages: StageCalls
) -> list[Hit]:
    """Return the reranked head, then the tail in its old order with scores below the head's.

    If the reranker fails, the hits are returned unchanged.
    """
    head, tail = list(hits[: rerank.depth]), hits[rerank.depth :]
    scores = await _scores(question, head, rerank, stages) if head else None
    if scores is None:
        return list(hits)
    mixed = rerank_order([h.score for h in head], scores, rerank.weight)
    by = rerank.by if rerank.by in ("reader", "feedback") else "rerank"
    head = [
        replace(h, score=m, scores={**h.scores, by: s})
        for h, m, s in zip(head, mixed, scores, strict=True)
    ]
    head.sort(key=lambda h: (-h.score, h.pmid, h.place or 0))
    lowest = head[-1].score
    return head + [replace(h, score=min(h.score, lowest) * 0.999) for h in tail]


def feedback_scores(hits: Sequence[Hit], examples: int) -> list[float]:
    """Return the similarity of each hit to the mean of the first `examples` hits, 0 to 1.

    This is pseudo-relevance feedback with the stored passage vectors (Rocchio 1971; for dense
    vectors Li et al. 2021, arXiv 2108.11044, who search again with the mean; here it only reorders
    the head). Examples are weighted by their scores. A hit without a vector, such as one from
    PubMed online, keeps its search score.
    """
    own = scaled(np.asarray([h.score for h in hits], np.float32))
    known = [position for position, h in enumerate(hits) if h.vector is not None]
    if known:
        vectors = np.asarray([hits[position].vector for position in known], np.float32)
        mean = own[known[:examples]] @ vectors[:examples]
        own[known] = scaled(vectors @ mean)
    return [float(score) for score in own]


async def _scores(
    question: str, head: Sequence[Hit], rerank: RerankSettings, stages: StageCalls
) -> list[float] | None:
    texts = [h.text for h in head]
    match rerank.by:
        case "model":
            stored = [h.late for h in head if h.late is not None]
            if len(stored) == len(head):
                return stored
            rerank_by = RERANK.at("reranker") if stages.facts.reranker else RERANK
            scores = await stages.call(rerank_by, question, texts)
            return None if scores is None else [float(s) for s in scores]
        case "reader":
            scores = await stages.call(ANSWERING, question, [h.whole for h in head])
            return None if scores is None else [float(s) for s in scores]
        case "feedback":
            return feedback_scores(head, rerank.examples)
        case "pointwise":
            return await rerank_pointwise(question, texts, stages.model_of("ranker"))
        case "listwise":
            order = await rerank_listwise(question, texts, stages.model_of("ranker"), rerank)
            if order is None:
                return None
            # A ranking has no scores, so assign evenly spaced ones from 1 down.
            by_place = {position: 1 - rank / len(order) for rank, position in enumerate(order)}
            return [by_place[position] for position in range(len(order))]
