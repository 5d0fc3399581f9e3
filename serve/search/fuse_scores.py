"""Fusion of dense and BM25 scores, and of rankings, into one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cluster.index.read_shard import Candidates
from cluster.settings.search_settings import FusionSettings, RetrieverSettings

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Fused:
    """Candidates as parallel arrays, best first; only `score` is scaled to 0 to 1."""

    pmids: npt.NDArray[np.int64]
    score: Scores
    dense: Scores
    bm25: Scores


def scaled(scores: Scores) -> Scores:
    """Divide scores by their maximum; negative scores become 0."""
    positive = np.maximum(scores, 0)
    greatest = positive.max(initial=0.0)
    return np.asarray(positive / greatest if greatest > 0 else positive, np.float32)


def _ranks(scores: Scores, pmids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the rank of each score, 1 for the best; ties go to the lower PMID."""
    ranks = np.empty(len(scores), np.int64)
    ranks[np.lexsort((pmids, -scores))] = np.arange(1, len(scores) + 1)
    return ranks


def _cut(
    found: npt.NDArray[np.bool_], ranks: npt.NDArray[np.int64], limit: int
) -> npt.NDArray[np.bool_]:
    """Return a mask of the best `limit` candidates that a branch found across all shards."""
    worst = np.sort(ranks[found])[:limit].max(initial=0)
    return np.asarray(found & (ranks <= worst), np.bool_)


def fuse(candidates: Candidates, retrieve: RetrieverSettings, fusion: FusionSettings) -> Fused:
    """Fuse the best `retrieve.dense` and `retrieve.bm25` citations of all shards.

    `weighted` is the weighted sum of the scores, each divided by the branch's maximum. `rrf` is the
    sum of weight / (rrf_k + rank) (Cormack et al. 2009). Both use both branches' scores for every
    candidate. A branch with limit 0 is ignored. Ties go to the lower PMID.
    """
    dense_rank = _ranks(candidates.dense, candidates.pmids)
    bm25_rank = _ranks(candidates.bm25, candidates.pmids)
    keep = _cut(candidates.found_dense, dense_rank, retrieve.dense) | _cut(
        candidates.found_bm25, bm25_rank, retrieve.bm25
    )
    pmids, dense, bm25 = candidates.pmids[keep], candidates.dense[keep], candidates.bm25[keep]
    dense_weight = fusion.dense if retrieve.dense else 0.0
    bm25_weight = fusion.bm25 if retrieve.bm25 else 0.0
    if fusion.method == "weighted":
        score = dense_weight * scaled(dense) + bm25_weight * scaled(bm25)
    else:
        score = dense_weight / (fusion.rrf_k + _ranks(dense, pmids)) + bm25_weight / (
            fusion.rrf_k + _ranks(bm25, pmids)
        )
    order = np.lexsort((pmids, -score))
    score = scaled(np.asarray(score[order], np.float32))
    return Fused(pmids[order], score, dense[order], bm25[order])


def rerank_order(fused: Sequence[float], reranked: Sequence[float], weight: float) -> list[float]:
    """Return `weight` times the reranker's scores plus 1 - `weight` times the fused scores.

    Both are divided by their maximum first.
    """
    first = scaled(np.asarray(fused, np.float32))
    second = scaled(np.asarray(reranked, np.float32))
    return [float(s) for s in (1 - weight) * first + weight * second]


def fuse_rankings(rankings: Sequence[Sequence[int]], k: float = 0.0) -> dict[int, float]:
    """Fuse rankings of PMIDs by reciprocal rank: the sum of 1 / (k + rank), with ranks from 1.

    Paper 003, equation 4, where k is 0. A ranking without a PMID adds nothing to its score. If a
    ranking repeats a PMID, the first position counts. The result is ordered best first; ties go to
    the lower PMID.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, pmid in enumerate(dict.fromkeys(ranking), 1):
            scores[pmid] = scores.get(pmid, 0.0) + 1 / (k + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
