"""Worked by hand; the arithmetic stands beside each figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    """Judges as it was told, by PMID, and remembers what it was asked."""

    def __init__(self, told: Mapping[int, Relation]) -> None:
        self.told = told
        self.asked: list[Asked] = []

    def judge(self, asked: Sequence[Asked]) -> list[Relation]:
        self.asked += asked
        return [self.told.get(item.pmid, "unknown") for item in asked]


# Task A.


def pooled(pool: dict[int, Relation], *said: Sequence[int]) -> dict[str, float]:
    """The measures of task A for one sentence that cites `said` (for, against)."""
    return score_task_a({"t": (ground("a", *said),)}, Labels(label("t", a=pool))).values()


def test_pooled_measures_of_task_a_by_hand() -> None:
    pool: dict[int, Relation] = {1: "support", 2: "support", 3: "neutral", 4: "contradict"}
    found = pooled(pool, [1, 3, 9], [4, 2])
    # Supports 1 and 3 are judged (9 is not), 1 is right; 1 and 2 are wanted.
    assert found["support precision"] == 1 / 2
    assert found["support recall"] == 1 / 2
    assert found["support F1"] == pytest.approx(2 * 0.25 / 1)
    # Contradicts 4 and 2 are judged, 4 is right; only 4 is wanted.
    assert found["contradict precision"] == 1 / 2
    assert found["contradict recall"] == 1
    assert found["contradict F1"] == pytest.approx(2 * 0.5 / 1.5)
    # A citation said to do both is a support.
    found = pooled({1: "contradict"}, [1], [1])
    assert (found["support precision"], found["contradict recall"]) == (0, 0)
    # Partial support is no support in the pool.
    found = pooled({1: "partial"}, [1])
    assert (found["support precision"], found["support recall"]) == (0, 0)


def test_pooled_measures_are_means_over_sentences_not_topics() -> None:
    labels = Labels(label("t", a={1: "support"}, b={1: "support"}) | label("u", c={1: "support"}))
    run = {"t": (ground("a", [1]), ground("b")), "u": (ground("c", [1]),)}
    found = score_task_a(run, labels).values()
    # Sentences 1, 0, 1. By topics it would be (0.5 + 1) / 2.
    assert found["support F1"] == pytest.approx(2 / 3)
    assert found["expert support precision (strict)"] == pytest.approx((0.5 + 1) / 2)


def test_expert_measures_by_hand() -> None:
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


def test_experts_see_the_first_three_that_were_not_given() -> None:
    labels = Labels(label("t", a={4: "support", 5: "neutral", 6: "contradict"}))
    run = {"t": (ground("a", [1, 2, 3, 4, 5], [1, 2, 3, 6], given=[1]),)}
    found = score_task_a(run, labels).values()
    # Without the given 1, the first three are 2, 3, 4; of the contradicting 1, 2, 3.
    assert found["expert support precision (strict)"] == 1
    assert found["expert contradict soft recall"] == 0
    found = score_task_a({"t": (ground("a", [4], given=[4]),)}, labels).values()
    assert found["expert support soft recall (strict)"] == 0


def test_an_unlabelled_topic_has_measures_only_with_a_judge() -> None:
    labels = Labels(label("t", a={1: "support"}))
    run = {"t": (ground("a", [1]),), "u": (ground("b", [2]), ground("c", [3]))}
    alone = score_task_a(run, labels)
    assert alone.values()["support F1"] == 1
    assert "support F1" not in alone.by_question()["u"]
    judged = score_task_a(run, labels, Told({2: "support"}))
    # Of three sentences a and b are right; nobody can judge 3.
    assert judged.values()["support F1"] == pytest.approx(2 / 3)
    assert judged.values()["expert support precision (strict)"] == 1
    assert "expert support precision (strict)" not in judged.by_question()["u"]


def test_people_are_believed_before_the_machine_and_counted_apart() -> None:
    labels = Labels(label("t", a={1: "neutral"}))
    judge = Told({1: "support", 2: "contradict"})
    scores = score_task_a({"t": (ground("a", [1, 2, 3], [2]),)}, labels, judge)
    assert [item.pmid for item in judge.asked] == [2, 3]
    found = scores.by_question()["t"]
    assert found["human judgements"] == 1
    assert found["machine judgements"] == 1
    assert found["unjudged citations"] == 1
    assert scores.values()["share of unjudged citations"] == pytest.approx(1 / 3)
    # Judged are 1 and 2, and neither supports.
    assert found["support precision"] == 0


def test_the_machine_s_words_widen_the_pool_by_the_runs_own_citations() -> None:
    run = {"t": (ground("a", [1], [2]),)}
    found = score_task_a(run, Labels(), Told({1: "support", 2: "support"})).values()
    # 2 supports but was said to contradict: found 1 of 2.
    assert found["support recall"] == 1 / 2
    assert found["contradict precision"] == 0


def test_an_empty_run_has_no_measure() -> None:
    for scores in (score_task_a({}, Labels()), score_task_b({}, Labels(), topics=["1"])):
        assert all(math.isnan(value) for value in scores.values().values())
    assert scores.missing == ("1",)


def test_answer_without_sentences_scores_nothing_and_a_missing_one_is_told() -> None:
    labels = Labels(label("t", a={1: "support"}) | label("u", a={1: "support"}))
    scores = score_task_a({"t": ()}, labels)
    assert scores.by_question()["t"]["expert support precision (strict)"] == 0
    assert scores.missing == ("u",)
    found = score_task_b({"t": ()}, labels).by_question()["t"]
    assert (found["citation coverage"], found["document recall"]) == (0, 0)


# Task B.


def test_citation_measures_by_hand() -> None:
    pool = label(
        "t", a={1: "support", 2: "contradict"}, b={3: "neutral", 4: "neutral"}, d={1: "partial"}
    )
    # A PMID cited twice in a sentence is one citation.
    run = {"t": (cite("a", 1, 1, 2), cite("b", 3, 4, 9), cite("c"), cite("d", 1))}
    found = score_task_b(run, Labels(pool)).values()
    # One of four sentences has a support; of six citations one supports, one contradicts.
    assert found["citation coverage"] == 1 / 4
    assert found["citation support rate"] == 1 / 6
    assert found["citation contradict rate"] == 1 / 6
    assert found["uncited sentence rate"] == 1 / 4
    assert found["share of human judgements"] == 5 / 6


def test_documents_by_hand() -> None:
    a: dict[int, Relation] = {1: "support", 2: "irrelevant"}
    b: dict[int, Relation] = {2: "neutral", 3: "neutral", 4: "neutral"}
    run = {"t": (cite("a", 1, 2), cite("b", 4), cite("new", 3, 8))}
    found = score_task_b(run, Labels(label("t", a=a, b=b))).values()
    # 1 is relevant to a, 4 to b, 3 to a sentence of the topic; 2 is not to a, 8 is unjudged.
    assert found["document precision"] == 3 / 5
    # Relevant to some sentence are 1, 2, 3 and 4.
    assert found["document recall"] == 3 / 4


def test_what_is_over_the_limits_is_counted_per_answer() -> None:
    for words, over in [(250, 0), (251, 1), (300, 50)]:
        run = {"t": (cite("w " * 100), cite("w " * (words - 100)))}
        assert score_task_b(run, Labels()).values()["words over 250"] == over
    run = {"t": (cite("a", 1, 2, 3, 4), cite("b", 1, 2, 3)), "u": (cite("c", 1, 1, 1, 1),)}
    assert score_task_b(run, Labels()).values()["sentences over 3 citations"] == 1 / 2


def test_judge_is_asked_once_for_what_has_no_label() -> None:
    judge = Told({1: "support"})
    run = {"t": (cite("a", 1, 1), cite("a", 1), cite("b", 5)), "u": (cite("a", 1),)}
    # Sentences are numbered from 1, so that the label is one of "b".
    score_task_b(run, Labels({"t": {3: {5: "support"}}}), judge)
    assert judge.asked == [Asked("t", "a", 1), Asked("u", "a", 1)]


RELATIONS = st.sampled_from(["support", "partial", "contradict", "neutral", "irrelevant"])
POOL = st.dictionaries(st.integers(1, 6), RELATIONS, min_size=1)
PMIDS = st.lists(st.integers(1, 8), max_size=5)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(PMIDS, PMIDS, PMIDS, POOL), min_size=1, max_size=4))
def test_shares_are_between_0_and_1_and_relaxed_is_never_below_strict(
    rows: list[tuple[list[int], list[int], list[int], dict[int, Relation]]],
) -> None:
    labels = Labels({"t": {str(n): row[3] for n, row in enumerate(rows)}})
    a = {"t": tuple(ground(str(n), *row[:3]) for n, row in enumerate(rows))}
    b = {"t": tuple(cite(str(n), *row[0]) for n, row in enumerate(rows))}
    found = score_task_a(a, labels).values()
    for name in ("precision", "soft recall"):
        strict, relaxed = (found[f"expert support {name} ({k})"] for k in ("strict", "relaxed"))
        assert relaxed >= strict
    form = ("words over 250", "sentences over 3 citations")
    other = {k: v for k, v in score_task_b(b, labels).values().items() if k not in form}
    assert all(0 <= v <= 1 for v in (found | other).values() if not math.isnan(v))
    assert other["citation support rate"] + other["citation contradict rate"] <= 1 + 1e-12


@pytest.mark.slow
@settings(max_examples=60)
@given(PMIDS, POOL)
def test_one_more_support_never_lowers_coverage_or_recall(
    pmids: list[int], pool: dict[int, Relation]
) -> None:
    labels = Labels({"t": {"a": {**pool, 9: "support"}}})
    less, more = (
        score_task_b({"t": (cite("a", *said),)}, labels).by_question()["t"]
        for said in (pmids, [*pmids, 9])
    )
    assert more["citation coverage"] >= less["citation coverage"]
    assert more["citation coverage"] == 1
    assert more["document recall"] > less["document recall"]
