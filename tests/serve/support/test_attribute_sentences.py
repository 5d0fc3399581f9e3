from __future__ import annotations

from collections.abc import Sequence

from serve.support.attribute_sentences import (
    SimilaritySupport,
    Support,
    attribute,
)
from tests.serve.answering import encode, evidence

LOSARTAN = "Losartan was not effective in reducing brain atrophy in 12 months."
METFORMIN = "Metformin lowers blood glucose by 30% in type 2 diabetes."


class Fixed:
    """Scores each premise by a table, whatever the hypothesis."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores = scores

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        return [Support(self.scores[premise]) for premise, _ in pairs]


def cite(sentence: str, *texts: str) -> tuple[int, ...]:
    (found,) = attribute([sentence], evidence(*texts), SimilaritySupport(encode), threshold=0.5)
    return found.pmids if found else ()


def test_sentence_cites_the_passage_that_says_it() -> None:
    assert cite("Metformin lowers blood glucose.", LOSARTAN, METFORMIN) == (2,)


def test_sentence_on_something_else_is_dropped() -> None:
    assert cite("Aspirin prevents colorectal cancer.", LOSARTAN, METFORMIN) == ()


def test_changed_number_is_dropped() -> None:
    assert cite("Metformin lowers blood glucose by 40% in type 2 diabetes.", METFORMIN) == ()


def test_lost_negation_is_dropped() -> None:
    assert cite("Losartan was effective in reducing brain atrophy in 12 months.", LOSARTAN) == ()


def test_number_of_another_sentence_is_no_support() -> None:
    text = "Drug A lowers mortality by 12%. Headache came in 30%."
    assert cite("Drug A lowers mortality by 30%.", text) == ()


def test_best_sentence_of_a_long_passage_counts() -> None:
    text = f"We asked a question. {METFORMIN} More work is needed on many other matters."
    assert cite(METFORMIN, text) == (1,)


def test_at_most_three_pmids_by_support_then_rank() -> None:
    texts = dict(zip("abcde", (0.7, 0.9, 0.9, 0.8, 0.75), strict=True))
    found = attribute(["S."], evidence(*texts), Fixed(texts), threshold=0.5)
    assert found[0] is not None
    assert found[0].pmids == (2, 3, 4)


def test_much_weaker_support_is_not_cited_beside_strong() -> None:
    scorer = Fixed({"a": 1.0, "b": 0.6})
    found = attribute(["S."], evidence("a", "b"), scorer, threshold=0.5)
    assert found[0] is not None
    assert found[0].pmids == (1,)


def test_support_is_that_of_the_best_passage() -> None:
    found = attribute(["S."], evidence("a", "b"), Fixed({"a": 0.6, "b": 0.9}), threshold=0.5)
    assert found[0] is not None
    assert found[0].support == 0.9


def test_support_at_the_threshold_is_enough() -> None:
    assert attribute(["S."], evidence("a"), Fixed({"a": 0.5}), threshold=0.5) != [None]


def test_each_sentence_gets_its_own_answer_in_order() -> None:
    said = ["Metformin lowers blood glucose.", "Cats sleep."]
    found = attribute(said, evidence(METFORMIN), SimilaritySupport(encode), threshold=0.5)
    assert [f.text if f else None for f in found] == ["Metformin lowers blood glucose.", None]


def test_no_evidence_supports_nothing() -> None:
    assert attribute(["S."], [], SimilaritySupport(encode), threshold=0.5) == [None]


def test_no_sentences_give_no_answers() -> None:
    assert attribute([], evidence("a"), SimilaritySupport(encode), threshold=0.5) == []


def test_opposite_statement_is_a_contradiction() -> None:
    said = "Losartan was effective in reducing brain atrophy."
    (support,) = SimilaritySupport(encode).score([(LOSARTAN, said)])
    assert support == Support(0.0, 1.0)


def test_unrelated_premise_is_neutral() -> None:
    (support,) = SimilaritySupport(encode).score([(LOSARTAN, "Cats sleep all day.")])
    assert support.against == 0.0
