from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cluster.index.read_shard import Fetched
from cluster.records import Citation, Passage
from serve.search.rank_hits import Hit
from serve.search.rerank_hits import feedback_scores


def hit(pmid: int, score: float, vector: Sequence[float] | None) -> Hit:
    vectors = None if vector is None else np.asarray([vector], np.float16)
    passage = Passage(pmid, "abstract", 0, 4, "Text")
    of = Fetched(Citation(pmid), (passage,), (0.0,), vectors=vectors)
    return Hit(of, 0, score, {})


def test_feedback_scores_are_similarities_to_the_best_hits(subtests: pytest.Subtests) -> None:
    like = [hit(1, 1.0, [1, 0]), hit(2, 0.8, [0, 1]), hit(3, 0.7, [1, 0])]
    by_score = [hit(1, 1.0, [1, 0]), hit(2, 0.5, [0, 1]), hit(3, 0.4, [0.6, 0.8])]
    away = [hit(1, 1.0, [1, 0]), hit(2, 0.9, [-1, 0])]
    one_without = [hit(1, 2.0, None), hit(2, 1.0, [1, 0]), hit(3, 0.5, [0, 1])]
    all_without = [hit(1, 2.0, None), hit(2, 1.0, None)]
    for name, hits, examples, scores in [
        ("like the best", like, 1, [1, 0, 1]),
        ("examples count by their scores", by_score, 2, [1, 0.5, 1]),
        ("away from the best", away, 1, [1, 0]),
        ("without a vector its own score", one_without, 1, [1, 1, 0]),
        ("without any vector the order stays", all_without, 2, [1.0, 0.5]),
        ("nothing", [], 2, []),
    ]:
        with subtests.test(name):
            assert feedback_scores(hits, examples) == pytest.approx(scores, abs=1e-3)
