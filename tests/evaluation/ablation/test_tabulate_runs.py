"""Ranking measures compared with hand calculations and other libraries, and verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.ablation.tabulate_runs import FAILURES, score_ranking, verdict_on
from evaluation.bioasq.score_question import score_documents
from evaluation.bootstrap import Interval


def test_ranking_measures_match_hand_calculation() -> None:
    """Gold a, b, c; found x a b: relevant at ranks 2 and 3."""
    found = score_ranking(["a", "b", "c"], ["x", "a", "b", "y"], 3)
    assert found["precision"] == 2 / 3
    assert found["recall"] == 2 / 3
    assert found["MAP"] == pytest.approx((1 / 2 + 2 / 3) / 3)
    assert found["MRR"] == 1 / 2
    assert score_ranking(["a", "b", "c"], ["a", "b"], 2)["MAP"] == 1.0
    assert set(score_ranking(["1"], [], 5).values()) == {0.0}
    gain = 1 / math.log2(3) + 1 / math.log2(4)
    assert found["nDCG"] == pytest.approx(gain / (1 + gain))


rankings = st.tuples(
    st.permutations([str(n) for n in range(15)]),
    st.sets(st.integers(0, 20).map(str), min_size=1).map(sorted),
)


@pytest.mark.slow
@given(rankings)
def test_ranking_measures_at_ten_equal_the_official_ones(case: tuple[list[str], list[str]]) -> None:
    ranked, gold = case
    precision, recall, _, average = score_documents(gold, ranked)
    found = score_ranking(gold, ranked, 10)
    assert (found["precision"], found["recall"]) == (precision, recall)
    assert found["MAP"] == pytest.approx(average)


@pytest.mark.slow
@given(rankings, st.integers(1, 15))
def test_ndcg_matches_scikit_learn(case: tuple[list[str], list[str]], k: int) -> None:
    ranked, wanted = case
    gold = [document for document in wanted if document in ranked] or [ranked[-1]]
    truth = np.asarray([[document in gold for document in ranked]], float)
    scores = -np.arange(len(ranked), dtype=float)[None]
    found = score_ranking(gold, ranked, k)["nDCG"]
    # Imported here: it takes a second, and most workers do not need it.
    from sklearn.metrics import ndcg_score

    assert found == pytest.approx(ndcg_score(truth, scores, k=k))


def test_fewer_judge_failures_are_better() -> None:
    fewer = Interval(-0.2, -0.3, -0.1)
    assert verdict_on(FAILURES, fewer) == "better"
    assert verdict_on("documents MAP", fewer) == "worse"
