"""Outcomes are scored against gold answers; the calibration fitted from them is usable."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.calibrate import (
    FEATURES,
    Outcome,
    collect_outcomes,
    fit_calibration,
    fit_no_weight,
    read_outcomes,
    related_level,
    score_answer,
    write_outcomes,
)
from serve.answer.calibration import read_calibration

pytestmark = pytest.mark.slow


def outcomes(count: int = 200) -> list[Outcome]:
    """Outcomes whose first feature predicts correctness in 90% of cases."""
    draw = random.Random(0)
    found = []
    for kind, features in FEATURES.items():
        for _ in range(count):
            values = {name: draw.uniform(-3, 3) for name in features}
            is_right = (values[features[0]] > 0) != (draw.random() < 0.1)
            found.append(Outcome(kind, values, float(not is_right), "made"))
    return found


def test_calibration_ranks_right_answers_first_and_keeps_its_budget(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(fit_calibration(outcomes())), encoding="utf-8")
    calibration = read_calibration(path)
    for kind, features in FEATURES.items():
        high = dict.fromkeys(features, 0.0) | {features[0]: 3.0}
        low = dict.fromkeys(features, 0.0) | {features[0]: -3.0}
        assert calibration.probability(kind, high) > 0.8 > 0.2 > calibration.probability(kind, low)
        assert calibration.threshold(kind, 0.05) > calibration.threshold(kind, 0.3)


def test_level_of_related_articles_misses_at_most_its_share() -> None:
    """The level is the second lowest relevance of 199 right answers; wrong ones do not count."""
    right = [Outcome("yesno", {"relevance": n / 10}, 0.0) for n in range(1, 200)]
    wrong = [Outcome("yesno", {"relevance": -9.0}, 1.0)] * 100
    assert related_level([*wrong, *right]) == pytest.approx(1 / (1 + math.exp(-0.2)), abs=1e-4)
    assert related_level(right[:40]) == 0.0
    # The lowest level of the sources with enough right answers counts.
    low = [replace(outcome, source="low", features={"relevance": -2.0}) for outcome in right]
    assert related_level([*right, *low]) == pytest.approx(1 / (1 + math.exp(2.0)), abs=1e-4)
    assert related_level([*right, *low[:40]]) == related_level(right)


def yes_no(lean: float, gold: str, source: str) -> Outcome:
    return Outcome("yesno", {"lean": lean}, 0.0, source, gold)


def test_weight_of_no_makes_both_answers_equally_probable() -> None:
    """The reader's weight for yes is half as large again; each source counts equally."""
    draw = random.Random(1)
    leans = [draw.uniform(-3, 3) for _ in range(2000)]
    shifted = [yes_no(x, "yes" if x + draw.gauss(0, 1) > 0.4 else "no", "a") for x in leans]
    assert fit_no_weight(shifted) == pytest.approx(math.exp(0.4), rel=0.1)
    balanced = [yes_no(x, "yes" if x + draw.gauss(0, 1) > 0 else "no", "b") for x in leans[:200]]
    assert fit_no_weight([*shifted, *balanced]) == pytest.approx(math.exp(0.2), rel=0.15)
    unknown = [replace(outcome, gold="") for outcome in shifted]
    upside_down = [yes_no(-o.features["lean"], o.gold, "a") for o in shifted]
    for useless in (unknown, shifted[:30], upside_down):
        assert fit_no_weight(useless) == 1.0


def test_outcomes_survive_a_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    made = outcomes(3)
    write_outcomes(path, made)
    assert read_outcomes([path]) == made
    path.write_text('{"kind": "yesno"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 1: not an outcome"):
        read_outcomes([path])
    with pytest.raises(InputError, match="cannot be read"):
        read_outcomes([tmp_path / "nowhere"])


def test_calibration_requires_right_and_wrong_answers_of_each_type() -> None:
    old = [Outcome(o.kind, {"cosine": 0.5}, o.wrong) for o in outcomes()]
    with pytest.raises(InputError, match="no feature 'share'"):
        fit_calibration(old)
    right = [Outcome(o.kind, o.features, 0.0) for o in outcomes(30)]
    for given in (outcomes(5), right):
        with pytest.raises(InputError, match="a calibration needs at least"):
            fit_calibration(given)


def reply(exact: Any = None, pmids: tuple[int, ...] = (1,)) -> dict[str, Any]:
    said = {"exact": exact, "ideal": [{"text": "It does.", "pmids": pmids}]}
    return {**said, "guess": None, "signals": {"share": 1.0}}


def test_loss_depends_on_question_type(subtests: pytest.Subtests) -> None:
    documents = ["http://www.ncbi.nlm.nih.gov/pubmed/1"]
    cases: list[tuple[dict[str, Any], dict[str, Any], float | None]] = [
        ({"type": "yesno", "exact_answer": "yes"}, reply("yes"), 0.0),
        # If no answer is stated, the guess is scored.
        ({"type": "yesno", "exact_answer": "yes"}, reply() | {"guess": {"exact": "yes"}}, 0.0),
        ({"type": "yesno", "exact_answer": "no"}, reply("yes"), 1.0),
        ({"type": "yesno", "exact_answer": "maybe"}, reply("yes"), 1.0),
        ({"type": "yesno"}, reply("yes"), None),
        ({"type": "factoid", "exact_answer": [["TP53", "p53"]]}, reply([["P53"], ["x"]]), 0.0),
        ({"type": "factoid", "exact_answer": ["TP53"]}, reply([["x"], ["TP53"]]), 1.0),
        ({"type": "factoid", "exact_answer": ["TP53"]}, reply([]), 1.0),
        ({"type": "list", "exact_answer": [["a"], ["b"]]}, reply([["A"], ["c"]]), 0.5),
        ({"type": "summary", "documents": documents}, reply(), 0.0),
        ({"type": "summary", "documents": documents}, reply(pmids=(2,)), 1.0),
        ({"type": "summary", "documents": []}, reply(), None),
    ]
    for gold, answer, loss in cases:
        with subtests.test(gold=gold, answer=answer):
            assert score_answer(gold, answer) == loss


def test_calibration_asks_questions_with_guess(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    rows = [
        {"id": "1", "type": "yesno", "body": "Does it help?", "exact_answer": "yes"},
        {"id": "2", "type": "yesno", "body": "Does it harm?"},
    ]
    path.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    asked = []

    def ask(request: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(request)
        return reply("yes")

    found = list(collect_outcomes([path], ask, "citeray"))
    assert [(o.wrong, o.gold) for o in found] == [(0.0, "yes")]
    assert all(request["guess"] and request["system"] == "citeray" for request in asked)
    absent = collect_outcomes([path], ask, None, unanswerable=True)
    assert [(outcome.wrong, outcome.gold) for outcome in absent] == [(1.0, ""), (1.0, "")]
    path.write_text(json.dumps({"questions": [{"id": "1"}]}), encoding="utf-8")
    with pytest.raises(InputError, match="needs `body` and a `type`"):
        list(collect_outcomes([path], ask, None))
