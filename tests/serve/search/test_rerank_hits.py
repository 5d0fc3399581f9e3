"""The head of a ranking ordered by how like its best hits it is."""

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


def test_a_hit_like_the_best_scores_above_one_that_is_not() -> None:
    hits = [hit(1, 1.0, [1, 0]), hit(2, 0.8, [0, 1]), hit(3, 0.7, [1, 0])]
    assert feedback_scores(hits, 1) == pytest.approx([1, 0, 1])


def test_examples_count_by_their_scores() -> None:
    hits = [hit(1, 1.0, [1, 0]), hit(2, 0.5, [0, 1]), hit(3, 0.4, [0.6, 0.8])]
    assert feedback_scores(hits, 2) == pytest.approx([1, 0.5, 1], abs=1e-3)


def test_what_points_away_from_the_best_scores_nothing() -> None:
    assert feedback_scores([hit(1, 1.0, [1, 0]), hit(2, 0.9, [-1, 0])], 1) == [1, 0]


def test_a_hit_without_a_vector_keeps_its_own_score() -> None:
    hits = [hit(1, 2.0, None), hit(2, 1.0, [1, 0]), hit(3, 0.5, [0, 1])]
    assert feedback_scores(hits, 1) == pytest.approx([1, 1, 0])


@pytest.mark.parametrize("count", [0, 2])
def test_without_any_vector_the_order_stays(count: int) -> None:
    hits = [hit(1, 2.0, None), hit(2, 1.0, None)][:count]
    assert feedback_scores(hits, 2) == [1.0, 0.5][:count]
