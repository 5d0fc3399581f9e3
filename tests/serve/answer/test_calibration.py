"""Probabilities of right answers, and thresholds that keep an error budget."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.errors import InputError
from serve.answer.calibration import Calibration, TypeCalibration, read_calibration, risk_threshold

Points = tuple[tuple[float, float], ...]
BUDGETS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def drawn(seed: int, count: int) -> Points:
    """Return calibrated points: an answer with probability p is wrong with probability 1 - p."""
    draw = random.Random(seed)
    probabilities = [draw.betavariate(3, 0.6) for _ in range(count)]
    return tuple((p, float(draw.random() > p)) for p in probabilities)


def stated(points: Points, threshold: float) -> list[float]:
    return [loss for probability, loss in points if probability >= threshold]


def test_threshold_is_infinite_without_a_budget_or_enough_right_points() -> None:
    points = drawn(1, 300)
    row = TypeCalibration(features=(), weights=(0,), points=points)
    calibration = Calibration(types={"list": row, "summary": row})
    assert calibration.threshold("list", 1.0) == 0.0
    assert calibration.threshold("list", 0.0) > 1
    assert risk_threshold(((0.9, 0.0),) * 500, 0.0) > 1
    assert risk_threshold((), 0.1) > 1
    assert risk_threshold(((0.9, 0.0),) * 8, 0.1) > 1
    assert risk_threshold(((0.9, 0.0),) * 9, 0.1) == 0.9
    assert risk_threshold(tuple((n / 500, 1.0) for n in range(500)), 0.1) > 1


def test_threshold_states_right_answers_within_the_budget() -> None:
    points = tuple((n / 1000, float(n < 500)) for n in range(1000))
    for budget in BUDGETS:
        threshold = risk_threshold(points, budget)
        assert threshold <= 0.5, budget
        assert (0.5 - threshold) / (1 - threshold) < budget, budget


def test_threshold_treats_equal_probabilities_alike() -> None:
    sure = tuple((0.9 + n / 1e5, 0.0) for n in range(1000))
    tied = ((0.5, 1.0),) * 10 + ((0.5, 0.0),) * 10 + ((0.5, 1.0),) * 400
    threshold = risk_threshold(sure + tied, 0.05)
    losses = stated(sure + tied, threshold)
    assert sum(losses) / len(losses) < 0.05


@given(st.integers(0, 10_000), st.integers(100, 1500), st.sampled_from(BUDGETS), st.booleans())
@settings(max_examples=20, deadline=None)
def test_errors_above_the_threshold_are_within_the_budget(
    seed: int, count: int, budget: float, tied: bool
) -> None:
    points = drawn(seed, count)
    points = tuple((round(p, 1) if tied else p, loss) for p, loss in points)
    losses = stated(points, risk_threshold(points, budget))
    assert sum(losses) < budget * len(losses) or not losses


def test_budget_holds_on_average_for_new_questions() -> None:
    new = drawn(0, 5000)
    calibrations = [drawn(seed, 500) for seed in range(1, 21)]
    for budget in (0.05, 0.1, 0.2):
        rates = []
        for points in calibrations:
            losses = stated(new, risk_threshold(points, budget))
            rates.append(sum(losses) / max(1, len(losses)))
        assert sum(rates) / len(rates) <= budget * 1.05, budget
        assert min(rates) > budget / 2, budget


@given(st.integers(0, 10_000), st.integers(100, 1500))
@settings(max_examples=10, deadline=None)
def test_larger_budget_states_at_least_as_many_answers(seed: int, count: int) -> None:
    points = drawn(seed, count)
    counts = [len(stated(points, risk_threshold(points, budget))) for budget in BUDGETS]
    for smaller, larger in pairwise(counts):
        assert larger >= smaller, counts


def test_probability_is_logistic_in_the_features() -> None:
    known = TypeCalibration(features=("said", "share"), weights=(1.0, 2.0, -1.0), points=())
    calibration = Calibration(types={"yesno": known, "summary": known})
    found = calibration.probability("yesno", {"said": 0.5, "share": 2.0, "other": 9.0})
    assert found == pytest.approx(0.5)
    assert calibration.probability("yesno", {"said": 1e9, "share": 0.0}) <= 1
    with pytest.raises(KeyError, match="share"):
        calibration.probability("yesno", {"said": 1.0})


def written(folder: Path, content: Any) -> Path:
    path = folder / "calibration.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    read_calibration.cache_clear()
    return path


ROW = {"features": ["said"], "weights": [0.5, 1], "points": [[0.9, 0], [0.2, 1]]}


def test_read_calibration_from_file(tmp_path: Path) -> None:
    content = {"types": {"summary": ROW}, "made": "on held-out questions"}
    found = read_calibration(written(tmp_path, content))
    assert found.types["summary"].points == ((0.9, 0.0), (0.2, 1.0))


def test_read_calibration_rejects_invalid_files(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for content in [
        "{",
        {},
        {"types": {"yesno": ROW}},
        {"types": {"summary": {**ROW, "extra": 1}}},
        {"types": {"summary": {**ROW, "weights": []}}},
        {"types": {"summary": {**ROW, "weights": [1]}}},
        {"types": {"summary": {**ROW, "points": [[0.5]]}}},
        {"types": {"summary": {**ROW, "features": ["length"]}}},
        '{"types": {"summary": {"features": [], "weights": [NaN], "points": []}}}',
    ]:
        with (
            subtests.test(content=content),
            pytest.raises(InputError, match=r"calibration\.json: not a calibration"),
        ):
            read_calibration(written(tmp_path, content))
    with pytest.raises(InputError, match="nowhere"):
        read_calibration(tmp_path / "nowhere")
