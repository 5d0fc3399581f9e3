import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.search.rank_exactly import distinct, rank_exactly
from tests.serve.answering import encode, passage


def test_the_top_passages_come_by_cosine_with_the_question() -> None:
    passages = [passage("Warfarin inhibits VKORC1."), passage("Metformin activates AMPK.", 2)]
    ranked = rank_exactly(passages, encode([p.text for p in passages]), encode(["Metformin?"])[0])
    assert [p.pmid for p, _ in ranked] == [2, 1]
    same = [passage("Same.", n) for n in (9, 3, 5)]
    vectors = encode(["Same."] * 3)
    assert [p for p, _ in rank_exactly(same, vectors, vectors[0])] == same
    assert rank_exactly([], np.empty((0, 4), np.float32), np.ones(4, np.float32)) == []


def test_a_passage_that_came_twice_is_kept_once() -> None:
    one, other = passage("Same.", 1), passage("Same.", 1, begin=10)
    assert distinct([one, other, passage("Same.", 1)]) == [one, other]


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 70))
@settings(deadline=None, max_examples=30)
def test_the_search_is_exact(seed: int, count: int, top: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    passages = [passage("x", n) for n in range(count)]
    ranked = rank_exactly(passages, vectors, vectors[0], top)
    best = np.sort(vectors @ vectors[0])[::-1][:top]
    assert np.allclose([score for _, score in ranked], best, atol=1e-4)
