"""Expected values are calculated by hand, with the arithmetic in comments."""

from __future__ import annotations

import math

import pytest

from evaluation.bioasq.read_bioasq import Snippet
from evaluation.bioasq.score_question import (
    log_average_precision,
    merge_snippets,
    overlap,
    score_documents,
    score_factoid,
    score_list,
    score_snippets,
)


def span(document: str, begin: int, end: int, section: str = "abstract") -> Snippet:
    return Snippet(document, section, section, begin, end)


def test_document_measures_match_hand_calculation() -> None:
    # The run has b, x, a: two of three are right, and two of three gold documents are found.
    precision, recall, f1, average = score_documents(["a", "b", "c"], ["b", "x", "a"])
    assert (precision, recall) == (2 / 3, 2 / 3)
    assert f1 == pytest.approx(2 / 3)
    # Hits at ranks 1 and 3: (1/1 + 2/3) / min(10, 3).
    assert average == pytest.approx((1 + 2 / 3) / 3)


def test_average_precision_counts_the_first_ten() -> None:
    gold = [str(n) for n in range(25)]
    assert score_documents(gold, gold[:10])[3] == pytest.approx(1.0)
    assert score_documents(gold, ["x", *gold[:1]])[3] == pytest.approx((1 / 2) / 10)
    assert score_documents(["a"], [*(f"x{n}" for n in range(10)), "a"]) == (0, 0, 0, 0)
    # The same document under another address is another document.
    found = ["https://pubmed.ncbi.nlm.nih.gov/1"]
    assert score_documents(["http://www.ncbi.nlm.nih.gov/pubmed/1"], found)[3] == 0


def test_empty_answers_score_zero() -> None:
    assert score_documents(["a"], []) == (0, 0, 0, 0)
    assert score_snippets([span("a", 0, 9)], []) == (0, 0, 0, 0)
    assert score_snippets([], [span("a", 0, 9)]) == (0, 0, 0, 0)


def test_overlapping_and_touching_snippets_are_merged() -> None:
    spans = [span("a", 0, 10), span("b", 0, 5), span("a", 20, 30), span("a", 10, 20)]
    assert merge_snippets(spans) == [span("a", 0, 30), span("b", 0, 5)]
    # The third contains the first and connects it with the second; the fourth lies within it.
    spans = [span("a", 5, 9), span("a", 15, 30), span("a", 0, 20), span("a", 3, 4)]
    assert merge_snippets(spans) == [span("a", 0, 30)]
    apart = [span("a", 0, 10), span("a", 11, 20), span("a", 0, 10, "title")]
    assert merge_snippets(apart) == apart


def test_overlap_includes_both_ends() -> None:
    ends = {(0, 9): 0, (5, 10): 1, (12, 15): 4, (18, 25): 3, (5, 40): 11, (21, 30): 0}
    gold = span("a", 10, 20)
    assert {(b, e): overlap(span("a", b, e), gold) for b, e in ends} == ends
    # The abstract's old section name is accepted only in the run.
    assert overlap(span("a", 0, 4, "0"), span("a", 0, 4)) == 5
    assert overlap(span("a", 0, 4), span("a", 0, 4, "0")) == 0


def test_snippet_measures_match_hand_calculation() -> None:
    gold = [span("a", 0, 9), span("b", 100, 119)]  # 10 and 20 characters
    found = [span("c", 0, 4), span("a", 5, 14)]  # 5 and 10 characters, of which 5 are shared
    precision, recall, f1, average = score_snippets(gold, found)
    assert (precision, recall) == (5 / 15, 5 / 30)
    assert f1 == pytest.approx(2 * (1 / 3) * (1 / 6) / (1 / 3 + 1 / 6))
    # Only the second is of a gold document; precision so far is 5 of 15. Two gold snippets.
    assert average == pytest.approx((5 / 15) / 2)
    # A snippet of a gold document is relevant where it does not overlap too: 10/10 at the first,
    # 10/20 at the second; the guidelines' relevance would give 1.
    apart = [span("a", 0, 9), span("a", 50, 59)]
    assert score_snippets(gold[:1], apart)[3] == pytest.approx(1 + 0.5)
    # Precision and recall compare documents by the last part of the address.
    gold, found = [span("http://x/pubmed/7", 0, 9)], [span("https://y/7", 0, 9)]
    assert score_snippets(gold, found) == (1.0, 1.0, 1.0, 0.0)


def test_factoid_accepts_any_synonym_at_its_rank() -> None:
    gold = [("jc virus", "jcv"), ("polyomavirus",)]
    assert score_factoid(gold, [("jcv",)]) == (1.0, 1.0, 1.0)
    assert score_factoid(gold, [("hiv",), ("ebv",), ("polyomavirus",)]) == (0.0, 1.0, 1 / 3)
    assert score_factoid(gold, [(name,) for name in "abcde"] + [("jcv",)]) == (0.0, 0.0, 0.0)
    assert score_factoid(gold, [("jc-virus",)])[1] == 0
    assert score_factoid(gold, None) == (0.0, 0.0, 0.0)


def test_list_measures_match_hand_calculation() -> None:
    gold = [("a", "alpha"), ("b",), ("c",)]
    # a and b are right, x is not: P 2/3; c is missed: R 2/3.
    assert score_list(gold, [("alpha",), ("x",), ("b",)]) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    # A gold item is counted only once.
    assert score_list(gold[:1], [("a",), ("alpha",)])[:2] == (1 / 2, 1.0)
    # A gold item that shares its answer with a found one is not missed.
    assert score_list([("a",), ("a", "b")], [("a",)]) == (1.0, 1.0, 1.0)
    assert score_list([("a",)], None) == score_list([("a",)], ((),)) == (0.0, 0.0, 0.0)


def test_reversed_span_counts_backwards_as_in_the_program() -> None:
    """Length 2 - 5 + 1 = -2, all of it inside 0 to 9: precision 1, recall -2 / 10."""
    found, gold = span("d", 5, 2), span("d", 0, 9)
    precision, recall, f1, average = score_snippets([gold], [found])
    assert (precision, recall, average) == (1, -0.2, 1)
    assert f1 == pytest.approx(2 * 1 * -0.2 / 0.8)
    assert math.isnan(log_average_precision(-0.5))
    # A span of length 0 makes the average precision NaN, which counts as 0.
    assert score_snippets([gold], [span("d", 5, 4)])[3] == 0
