"""Measures of verdicts, and risk-coverage curves against figures computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from evaluation.bioasq.read_bioasq import Entry
from evaluation.bioasq.risk_coverage import NAMES, score_risk
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bioasq.score_verdicts import reads_as, score_verdicts
from evaluation.scores import Scores


def entry(
    id_: str, kind: str, *names: str, ideal: str = "", body: str = "Is it so?", **fields: Any
) -> Entry:
    exact = tuple((name,) for name in names) or None
    texts = (ideal,) if ideal else ()
    return Entry(id_, kind, (), (), exact, texts, body, **fields)


def known(scores: Scores) -> dict[str, float]:
    return {name: value for name, value in scores.values().items() if value == value}


def measured(gold: list[Entry], run: list[Entry]) -> dict[str, float]:
    wanted, said = ({e.id: e for e in entries} for entries in (gold, run))
    return known(score_verdicts(wanted, said, score_run(wanted, said)))


def test_verdict_shares_and_accuracy_among_answered() -> None:
    gold = [
        entry("1", "yesno", "yes"),
        entry("2", "yesno", "no"),
        entry("3", "summary"),
        entry("4", "factoid", "a"),
    ]
    run = [
        entry("1", "yesno", "yes", verdict="answered"),
        entry("2", "yesno", "yes", verdict="not_enough_evidence"),
        entry("3", "summary", verdict="mixed"),
        entry("4", "factoid", "b", "a", verdict="answered"),
    ]
    found = measured(gold, run)
    assert found["verdict yesno answered"] == found["verdict yesno not enough evidence"] == 0.5
    assert (found["verdict yesno mixed"], found["verdict summary mixed"]) == (0, 1)
    assert "verdict list answered" not in found
    assert found["answered yesno accuracy"] == 1
    assert found["answered factoid strict accuracy"] == 0
    assert found["answered factoid lenient accuracy"] == 1


def test_first_sentence_is_read_as_yes_or_no(subtests: pytest.Subtests) -> None:
    for question, ideal, said in [
        ("Does iron help?", "Yes, iron helps. No harm was seen.", "yes"),
        ("Does iron help?", "No. Iron helps nobody.", "no"),
        ("Does iron help?", "Iron helps in anaemia. It does not help in gout.", "yes"),
        ("Does iron help?", "Iron does not help.", "no"),
        ("Is iron contraindicated?", "Iron is contraindicated in overload.", "yes"),
        ("Is iron safe?", "Iron is contraindicated in overload.", "no"),
        ("Iron is a metal, yes or no?", "Iron is a metal.", "yes"),
        ("Is iron safe?", "Northern diets hold iron.", "yes"),
    ]:
        with subtests.test(question=question, ideal=ideal):
            assert reads_as(question, ideal) == said


def test_agreement_of_exact_and_ideal_answers() -> None:
    gold = [entry("1", "yesno", "yes"), entry("2", "factoid", "a"), entry("3", "list", "a")]
    run = [
        entry("1", "yesno", "no", ideal="Yes, it does."),
        entry("2", "factoid", "htt", "bdnf", ideal="The gene HTT is mutated."),
        entry("3", "list", "aspirin", "iron", ideal="Aspirin may; ironing does not."),
    ]
    found = measured(gold, run)
    assert found["agreement yesno"] == 0
    assert found["agreement factoid"] == 1
    assert found["agreement list"] == 0.5


# Confidence and correctness of each answer, not sorted by confidence.
FIVE = [(0.5, True), (0.9, True), (0.1, False), (0.8, False), (0.7, True)]


def risk_of(gold: list[Entry], run: list[Entry]) -> Scores:
    wanted, said = ({e.id: e for e in entries} for entries in (gold, run))
    return score_risk(said, score_run(wanted, said))


def yesno(answers: Sequence[tuple[float | None, bool]], verdicts: str = "") -> Scores:
    """Return yes/no questions; "a" in `verdicts` means `answered`, any other letter `mixed`."""
    gold = [entry(str(n), "yesno", "yes") for n in range(len(answers))]
    run = [
        entry(
            str(n),
            "yesno",
            "yes" if right else "no",
            confidence=confidence,
            verdict="" if not verdicts else "answered" if verdicts[n] == "a" else "mixed",
        )
        for n, (confidence, right) in enumerate(answers)
    ]
    return risk_of(gold, run)


def test_risk_coverage_curve_and_its_area() -> None:
    # Sorted: right, wrong, right, right, wrong; risk 0, 1/2, 1/3, 1/4, 2/5.
    scores = yesno(FIVE)
    found = known(scores)
    assert found["risk yesno AURC"] == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 4 + 2 / 5) / 5)
    # 30% of 5 questions are 2 questions, 50% are 3, 70% are 4, 90% are 5.
    at = {percent: found[f"risk yesno at {percent}%"] for percent in (30, 50, 70, 90)}
    assert at == pytest.approx({30: 1 / 2, 50: 1 / 3, 70: 1 / 4, 90: 2 / 5})


def test_ties_in_confidence_are_answered_together() -> None:
    scores = yesno([(0.9, True), (0.5, False), (0.5, True), (0.5, True)])
    found = known(scores)
    assert found["risk yesno AURC"] == pytest.approx((0 + 3 * 0.25) / 4)
    assert found["risk yesno at 30%"] == 0.25


def test_risk_and_coverage_of_answered_verdicts() -> None:
    found = known(yesno(FIVE, "aamam"))
    # Answered are 0.5 (right), 0.9 (right) and 0.8 (wrong).
    assert found["coverage yesno answered"] == pytest.approx(3 / 5)
    assert found["risk yesno answered"] == pytest.approx(1 / 3)
    nothing = known(yesno(FIVE, "mmmmm"))
    assert nothing["coverage yesno answered"] == 0
    assert "risk yesno answered" not in nothing


def test_loss_of_factoid_and_list_answers() -> None:
    gold = [entry(id_, "factoid", "htt") for id_ in "abc"]
    run = [
        entry("a", "factoid", "bdnf", "htt", confidence=0.9),
        entry("b", "factoid", "bdnf", confidence=0.8),
        entry("c", "factoid", confidence=0.7),
    ]
    # Losses 0, 1, 1: risk 0, 1/2, 2/3.
    assert known(risk_of(gold, run))["risk factoid AURC"] == pytest.approx((1 / 2 + 2 / 3) / 3)
    gold = [entry(id_, "list", "a", "b") for id_ in "xy"]
    run = [
        entry("x", "list", "a", "c", confidence=0.4),
        entry("y", "list", "a", "b", confidence=0.6),
    ]
    # F1 is 1/2 and 1; sorted, losses are 0 and 1/2: risk 0 and 1/4.
    found = known(risk_of(gold, run))
    assert found["risk list AURC"] == pytest.approx((0 + 1 / 4) / 2)
    assert found["risk list at 90%"] == pytest.approx(1 / 4)


def test_questions_without_confidence_are_excluded() -> None:
    found = known(yesno([(None, False), (0.9, True), (0.8, False)]))
    assert found["risk yesno AURC"] == pytest.approx((0 + 1 / 2) / 2)
    scores = yesno([(None, True), (None, False)])
    assert not NAMES & known(scores).keys()


def test_each_resample_is_sorted_again() -> None:
    scores = yesno([(0.9, True), (0.8, False), (0.7, True)])
    column = scores.names.index("risk yesno AURC")
    # The resamples: the second question twice and the third once; only the first; none.
    drawn = scores.over(np.array([[0.0, 2, 1], [3, 0, 0], [0, 0, 0]]))[:, column]
    assert drawn[:2] == pytest.approx([(2 * 1 + 2 / 3) / 3, 0])
    assert np.isnan(drawn[2])
