"""Expected values are calculated by hand, with the arithmetic in comments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from evaluation.biogen.judge_citations import Asked
from evaluation.biogen.read_biogen import Cited, Grounded
from evaluation.biogen.read_labels import Labels, Relation, sentence_key
from evaluation.biogen.score_biogen import score_task_a, score_task_b


def label(
    topic: str, **sentences: dict[int, Relation]
) -> dict[str, dict[str | int, dict[int, Relation]]]:
    return {topic: {sentence_key(text): pmids for text, pmids in sentences.items()}}


def ground(
    text: str, supported: Sequence[int] = (), against: Sequence[int] = (), given: Sequence[int] = ()
) -> Grounded:
    return Grounded(text, tuple(given), tuple(supported), tuple(against))


def cite(text: str, *pmids: int) -> Cited:
    return Cited(text, pmids)


class Told:
    """Judge with fixed relations by PMID, which records its requests."""

    def __init__(self, relations: Mapping[int, Relation]) -> None:
        self.relations = relations
        self.asked: list[Asked] = []

    def judge(self, asked: Sequence[Asked]) -> list[Relation]:
        self.asked += asked
        return [self.relations.get(item.pmid, "unknown") for item in asked]


# Task A.


def pooled(pool: dict[int, Relation], *said: Sequence[int]) -> dict[str, float]:
    """Return the measures of task A for one sentence that cites `said` (for, against)."""
    return score_task_a({"t": (ground("a", *said),)}, Labels(label("t", a=pool))).values()


def test_pooled_task_a_measures_match_hand_calculation() -> None:
    pool: dict[int, Relation] = {1: "support", 2: "support", 3: "neutral", 4: "contradict"}
    found = pooled(pool, [1, 3, 9], [4, 2])
    # Of the supports, 1 and 3 are judged, 9 is not, and 1 is right; 1 and 2 are expected.
    assert found["support precision"] == 1 / 2
    assert found["support recall"] == 1 / 2
    assert found["support F1"] == pytest.approx(2 * 0.25 / 1)
    # Of the contradictions, 4 and 2 are judged, and 4 is right; only 4 is expected.
    assert found["contradict precision"] == 1 / 2
    assert found["contradict recall"] == 1
    assert found["contradict F1"] == pytest.approx(2 * 0.5 / 1.5)
    # A citation on both sides counts as a support.
    found = pooled({1: "contradict"}, [1], [1])
    assert (found["support precision"], found["contradict recall"]) == (0, 0)
    # Partial support does not count in the pool.
    found = pooled({1: "partial"}, [1])
    assert (found["support precision"], found["support recall"]) == (0, 0)


def test_pooled_measures_average_over_sentences() -> None:
    labels = Labels(label("t", a={1: "support"}, b={1: "support"}) | label("u", c={1: "support"}))
    run = {"t": (ground("a", [1]), ground("b")), "u": (ground("c", [1]),)}
    found = score_task_a(run, labels).values()
    # Sentences 1, 0, 1. By topics it would be (0.5 + 1) / 2.
    assert found["support F1"] == pytest.approx(2 / 3)
    assert found["expert support precision (strict)"] == pytest.approx((0.5 + 1) / 2)


def test_expert_measures_match_hand_calculation() -> None:
    pool: dict[int, Relation] = {1: "support", 2: "partial", 3: "neutral", 4: "contradict"}
    labels = Labels(label("t", a=pool, b=pool))
    run = {"t": (ground("a", [1, 2, 3], [4, 9]), ground("b", [2, 3, 9], [3]))}
    found = score_task_a(run, labels).values()
    # Strict: a has 1 of 3 right; b has 0 of 2 judged. Soft recall 1 and 0.
    assert found["expert support precision (strict)"] == pytest.approx((1 / 3 + 0) / 2)
    assert found["expert support soft recall (strict)"] == (1 + 0) / 2
    # Relaxed: a 2 of 3, b 1 of 2.
    assert found["expert support precision (relaxed)"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found["expert support soft recall (relaxed)"] == 1
    # Contradictions: a 1 of 1 judged, b 0 of 1.
    assert found["expert contradict precision"] == (1 + 0) / 2
    assert found["expert contradict soft recall"] == (1 + 0) / 2


def test_expert_measures_use_the_first_three_new_pmids() -> None:
    labels = Labels(label("t", a={4: "support", 5: "neutral", 6: "contradict"}))
    run = {"t": (ground("a", [1, 2, 3, 4, 5], [1, 2, 3, 6], given=[1]),)}
    found = score_task_a(run, labels).values()
    # Without the given PMID 1, the first three are 2, 3, 4; of the contradicting ones 1, 2, 3.
    assert found["expert support precision (strict)"] == 1
    assert found["expert contradict soft recall"] == 0
    found = score_task_a({"t": (ground("a", [4], given=[4]),)}, labels).values()
    assert found["expert support soft recall (strict)"] == 0


def test_unlabelled_topic_is_scored_only_with_a_judge() -> None:
    labels = Labels(label("t", a={1: "support"}))
    run = {"t": (ground("a", [1]),), "u": (ground("b", [2]), ground("c", [3]))}
    alone = score_task_a(run, labels)
    assert alone.values()["support F1"] == 1
    assert "support F1" not in alone.by_question()["u"]
    judged = score_task_a(run, labels, Told({2: "support"}))
    # Of three sentences, a and b are right; the third cannot be judged.
    assert judged.values()["support F1"] == pytest.approx(2 / 3)
    assert judged.values()["expert support precision (strict)"] == 1
    assert "expert support precision (strict)" not in judged.by_question()["u"]


def test_human_labels_take_precedence_over_the_judge() -> None:
    labels = Labels(label("t", a={1: "neutral"}))
    judge = Told({1: "support", 2: "contradict"})
    scores = score_task_a({"t": (ground("a", [1, 2, 3], [2]),)}, labels, judge)
    assert [item.pmid for item in judge.asked] == [2, 3]
    found = scores.by_question()["t"]
    assert found["human judgements"] == 1
    assert found["machine judgements"] == 1
    assert found["unjudged citations"] == 1
    assert scores.values()["share of unjudged citations"] == pytest.approx(1 / 3)
    # PMIDs 1 and 2 are judged, and neither supports.
    assert found["support precision"] == 0


def test_judge_adds_the_runs_citations_to_the_pool() -> None:
    run = {"t": (ground("a", [1], [2]),)}
    found = score_task_a(run, Labels(), Told({1: "support", 2: "support"})).values()
    # PMID 2 supports, but the run cites it as contradicting: 1 of 2 supports found.
    assert found["support recall"] == 1 / 2
    assert found["contradict precision"] == 0


def test_empty_biogen_run_has_no_measure() -> None:
    for scores in (score_task_a({}, Labels()), score_task_b({}, Labels(), topics=["1"])):
        assert all(math.isnan(value) for value in scores.values().values())
    assert scores.missing == ("1",)


def test_empty_answer_scores_zero_and_missing_topic_is_listed() -> None:
    labels = Labels(label("t", a={1: "support"}) | label("u", a={1: "support"}))
    scores = score_task_a({"t": ()}, labels)
    assert scores.by_question()["t"]["expert support precision (strict)"] == 0
    assert scores.missing == ("u",)
    found = score_task_b({"t": ()}, labels).by_question()["t"]
    assert (found["citation coverage"], found["document recall"]) == (0, 0)


# Task B.


def test_citation_measures_match_hand_calculation() -> None:
    pool = label(
        "t", a={1: "support", 2: "contradict"}, b={3: "neutral", 4: "neutral"}, d={1: "partial"}
    )
    # A PMID cited twice in a sentence is one citation.
    run = {"t": (cite("a", 1, 1, 2), cite("b", 3, 4, 9), cite("c"), cite("d", 1))}
    found = score_task_b(run, Labels(pool)).values()
    # One of four sentences is supported; of six citations, one supports and one contradicts.
    assert found["citation coverage"] == 1 / 4
    assert found["citation support rate"] == 1 / 6
    assert found["citation contradict rate"] == 1 / 6
    assert found["uncited sentence rate"] == 1 / 4
    assert found["share of human judgements"] == 5 / 6


def test_document_measures_match_hand_calculation() -> None:
    a: dict[int, Relation] = {1: "support", 2: "irrelevant"}
    b: dict[int, Relation] = {2: "neutral", 3: "neutral", 4: "neutral"}
    run = {"t": (cite("a", 1, 2), cite("b", 4), cite("new", 3, 8))}
    found = score_task_b(run, Labels(label("t", a=a, b=b))).values()
    # 1 is relevant to a, 4 to b, 3 to a sentence of the topic; 2 is not to a, 8 is unjudged.
    assert found["document precision"] == 3 / 5
    # Relevant to some sentence are 1, 2, 3 and 4.
    assert found["document recall"] == 3 / 4


def test_breaches_of_the_limits_are_counted_per_answer() -> None:
    for words, over in [(250, 0), (251, 1), (300, 50)]:
        run = {"t": (cite("w " * 100), cite("w " * (words - 100)))}
        assert score_task_b(run, Labels()).values()["words over 250"] == over
    run = {"t": (cite("a", 1, 2, 3, 4), cite("b", 1, 2, 3)), "u": (cite("c", 1, 1, 1, 1),)}
    assert score_task_b(run, Labels()).values()["sentences over 3 citations"] == 1 / 2


def test_judge_is_asked_once_per_unlabelled_citation() -> None:
    judge = Told({1: "support"})
    run = {"t": (cite("a", 1, 1), cite("a", 1), cite("b", 5)), "u": (cite("a", 1),)}
    # Sentences are numbered from 1, so sentence 3 is "b".
    score_task_b(run, Labels({"t": {3: {5: "support"}}}), judge)
    assert judge.asked == [Asked("t", "a", 1), Asked("u", "a", 1)]
