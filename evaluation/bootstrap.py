"""Percentile bootstrap: how much a measure could vary with the choice of questions.

Questions are drawn with replacement, at least 1,000 times, with a fixed seed (Efron and Tibshirani
1993, chapters 13 and 16). Two runs are compared on the same draws, so that the difficulty of the
questions affects both alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evaluation.scores import Scores, Values

RESAMPLES = 2000
LEVEL = 0.95
_CHUNK = 250


@dataclass(frozen=True, slots=True)
class Interval:
    """A measure with its 95% interval over the resamples; NaN if no question has the measure."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0; False where it is NaN."""
        return self.low > 0 or self.high < 0


NO_DIFFERENCE = "no difference shown"
_WORDS = {1: ("better", "worse"), -1: ("worse", "better"), 0: ("higher", "lower")}


def verdict(difference: Interval, direction: int = 1) -> str:
    """Return "better" or "worse" if the interval excludes 0; `direction` is as in Measure."""
    if not difference.excludes_zero:
        return NO_DIFFERENCE
    return _WORDS[direction][difference.value < 0]


def intervals(scores: Scores, *, seed: int = 0, resamples: int = RESAMPLES) -> dict[str, Interval]:
    """Return each measure of a run with its interval; {} if the run answers no question."""
    if not scores.ids:
        return {}
    drawn = np.concatenate(
        [scores.over(counts) for counts in _draws(len(scores.ids), seed, resamples)]
    )
    return _between(scores.values(), drawn)


def differences(
    one: Scores, other: Scores, *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Interval]:
    """Return each measure of `one` minus that of `other`, over the questions both answer.

    A column counts only if both runs have it, so that leaving out hard questions gives no
    advantage.
    """
    theirs = set(other.ids)
    shared = [id_ for id_ in one.ids if id_ in theirs]
    if not shared:
        return {}
    one, other = one.only(shared), other.only(shared)
    either = np.isnan(one.rows) | np.isnan(other.rows)
    one, other = one.without(either), other.without(either)
    drawn = np.concatenate(
        [one.over(counts) - other.over(counts) for counts in _draws(len(shared), seed, resamples)]
    )
    first, second = one.values(), other.values()
    return _between({name: first[name] - second[name] for name in first}, drawn)


def _draws(questions: int, seed: int, resamples: int) -> Iterator[Values]:
    """Yield how often each question is drawn: (up to 250, questions), `resamples` rows in all."""
    random = np.random.default_rng(seed)
    for begin in range(0, resamples, _CHUNK):
        rows = min(_CHUNK, resamples - begin)
        drawn = random.integers(0, questions, (rows, questions))
        drawn += np.arange(rows)[:, None] * questions
        counts = np.bincount(drawn.ravel(), minlength=rows * questions)
        yield counts.reshape(rows, questions).astype(np.float64)


def _between(values: dict[str, float], drawn: Values) -> dict[str, Interval]:
    found = {}
    tail = 100 * (1 - LEVEL) / 2
    for column, (name, value) in enumerate(values.items()):
        seen = drawn[:, column][~np.isnan(drawn[:, column])]
        low, high = np.percentile(seen, [tail, 100 - tail]) if len(seen) else (np.nan, np.nan)
        found[name] = Interval(value, float(low), float(high))
    return found
