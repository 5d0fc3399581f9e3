"""Means of ratings and agreement, by hand and against scikit-learn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.ratings.agreement import agree, mean_ratings, weighted_kappa
from evaluation.ratings.ratings_files import Ratings

RATING = st.integers(1, 5)


def test_kappa_by_hand() -> None:
    # Squares of differences: 0 + 1 + 0 + 4 of 4 pairs. By chance 1, 2, 4 and 5 each meet 1, 3, 4
    # and 3: (0+4+9+4) + (1+1+4+1) + (9+1+0+1) + (16+4+1+4) of 16 pairs.
    pairs = [(1, 1), (2, 3), (4, 4), (5, 3)]
    assert weighted_kappa(pairs) == pytest.approx(1 - (5 / 4) / (60 / 16))


@pytest.mark.parametrize("pairs", [[], [(4, 4), (4, 4)]])
def test_no_kappa_where_chance_alone_would_agree(pairs: list[tuple[int, int]]) -> None:
    assert math.isnan(weighted_kappa(pairs))


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(st.tuples(RATING, RATING), min_size=2, max_size=30))
def test_kappa_is_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    found = weighted_kappa(pairs)
    if not math.isnan(found):
        one, other = zip(*pairs, strict=True)
        from sklearn.metrics import cohen_kappa_score

        theirs = cohen_kappa_score(one, other, labels=[1, 2, 3, 4, 5], weights="quadratic")
        assert found == pytest.approx(theirs, abs=1e-9)


ANN = Ratings("s", "Ann", {"1-1": {"Recall": 5, "Precision": 2}, "1-2": {"Recall": 3}})
BEN = Ratings("s", "Ben", {"1-1": {"Recall": 4, "Precision": 4}, "2-1": {"Recall": 1}})


def test_agreement_is_over_what_both_rated() -> None:
    found = {row.criterion: row for row in agree(ANN, BEN)}
    recall, precision = found["Recall"], found["Precision"]
    assert (recall.answers, recall.equal, recall.within_one) == (1, 0, 1)
    assert (precision.answers, precision.equal, precision.within_one) == (1, 0, 0)
    assert found["Readability"].answers == 0
    assert math.isnan(found["Readability"].equal)


def test_means_are_over_all_ratings_of_a_runs_answers() -> None:
    found = mean_ratings((ANN, BEN), {"1-1": "a", "1-2": "b", "2-1": "a"})
    assert found["a"]["Recall"] == pytest.approx((5 + 4 + 1) / 3)
    assert found["b"]["Recall"] == 3
    assert math.isnan(found["b"]["Precision"])
