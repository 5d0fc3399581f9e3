"""A table of scores per question, and the measures over the whole set computed from it.

A measure is a function of column sums, so that a resample of the questions costs one matrix product
or one sort of a column, and no question is scored twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


class Drawn:
    """Sums over resamples of the questions.

    Arrays are (resamples,) unless a method says otherwise. `rows` (questions, columns) are the
    scores; `counts` (resamples, questions) is how often each question was drawn.
    """

    def __init__(self, columns: Sequence[str], rows: Values, counts: Values) -> None:
        known = ~np.isnan(rows)
        self._places = {name: position for position, name in enumerate(columns)}
        self._rows = rows
        self._counts = counts
        self._sums: Values = counts @ np.where(known, rows, 0.0)
        self._known: Values = counts @ known.astype(float)
        self._cumulated: dict[tuple[str, str], tuple[Values, Values]] = {}

    def sum(self, column: str) -> Values:
        """Return the sum of a column; 0 if no drawn question has it."""
        return self._sums[:, self._places[column]]

    def questions(self, column: str) -> Values:
        """Return the number of drawn questions that have the column."""
        return self._known[:, self._places[column]]

    def mean(self, column: str) -> Values:
        """Return the mean of a column; NaN if no drawn question has it."""
        return self.sum(column) / self.questions(column)

    def cumulate(self, column: str, by: str) -> tuple[Values, Values]:
        """Count the questions whose `by` is at or above a threshold, and sum their `column`.

        The thresholds are the distinct values of `by` in descending order; both arrays are
        (resamples, thresholds). Only questions that have both columns count.
        """
        if (column, by) not in self._cumulated:
            self._cumulated[column, by] = self._cumulate(column, by)
        return self._cumulated[column, by]

    def _cumulate(self, column: str, by: str) -> tuple[Values, Values]:
        values, keys = self._rows[:, self._places[column]], self._rows[:, self._places[by]]
        known = np.flatnonzero(~np.isnan(values) & ~np.isnan(keys))
        order = known[np.argsort(-keys[known], kind="stable")]
        # Last question of each run of equal keys.
        last = np.flatnonzero(np.diff(keys[order], append=np.inf))
        counts = self._counts[:, order]
        return counts.cumsum(axis=1)[:, last], (counts * values[order]).cumsum(axis=1)[:, last]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure over a set of questions.

    `of` may divide 0 by 0, because NaN means that the measure does not apply. `direction` is 1 if
    more is better, -1 if less is better, and 0 if neither is.
    """

    name: str
    of: Callable[[Drawn], Values]
    direction: int = 1


def mean(name: str, column: str | None = None, direction: int = 1) -> Measure:
    """Return the measure of the mean of `column` (default `name`) over questions that have it."""
    return Measure(name, lambda drawn: drawn.mean(column or name), direction)


def ratio(name: str, part: str, whole: str, direction: int = 1) -> Measure:
    """Return the measure of the ratio of two sums, which weights items equally, not questions."""
    return Measure(name, lambda drawn: drawn.sum(part) / drawn.sum(whole), direction)


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of the answered questions `ids`, in gold order; `rows` is (questions, columns).

    A value is NaN if the column does not apply to the question.
    """

    ids: tuple[str, ...]
    missing: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Values
    measures: tuple[Measure, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the measures, in order."""
        return tuple(measure.name for measure in self.measures)

    def over(self, counts: Values) -> Values:
        """Return each measure over resamples of the questions; NaN if it does not apply.

        `counts` (resamples, questions) is how often each question was drawn; the result is
        (resamples, measures).
        """
        drawn = Drawn(self.columns, self.rows, counts)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.stack([measure.of(drawn) for measure in self.measures], axis=1)

    def values(self) -> dict[str, float]:
        """Return each measure over the set itself."""
        found = self.over(np.ones((1, len(self.ids))))[0]
        return dict(zip(self.names, found.tolist(), strict=True))

    def only(self, ids: Sequence[str]) -> Scores:
        """Return the scores of the answered questions `ids`, in their order."""
        places = {id_: position for position, id_ in enumerate(self.ids)}
        return replace(self, ids=tuple(ids), rows=self.rows[[places[id_] for id_ in ids]])

    def without(self, cells: npt.NDArray[np.bool_]) -> Scores:
        """Return a copy in which `cells` (questions, columns) do not apply."""
        return replace(self, rows=np.where(cells, np.nan, self.rows))

    def beside(self, other: Scores) -> Scores:
        """Return a copy with the columns of `other`, which are NaN for questions that it lacks."""
        rows = np.full((len(self.ids), len(other.columns)), np.nan)
        places = {id_: position for position, id_ in enumerate(other.ids)}
        for row, id_ in zip(rows, self.ids, strict=True):
            if id_ in places:
                row[:] = other.rows[places[id_]]
        return Scores(
            self.ids,
            self.missing,
            self.columns + other.columns,
            np.hstack([self.rows, rows]),
            self.measures + other.measures,
        )

    def by_question(self) -> dict[str, dict[str, float]]:
        """Return the scores of each question, without columns that do not apply to it."""
        return {
            id_: {n: v for n, v in zip(self.columns, row, strict=True) if not math.isnan(v)}
            for id_, row in zip(self.ids, self.rows.tolist(), strict=True)
        }


def tabulate(
    found: Mapping[str, Mapping[str, float]],
    columns: Sequence[str],
    measures: Sequence[Measure],
    missing: Sequence[str] = (),
) -> Scores:
    """Build the scores from `found`, the applicable columns of each answered question."""
    rows = np.full((len(found), len(columns)), np.nan)
    places = {name: position for position, name in enumerate(columns)}
    for row, values in zip(rows, found.values(), strict=True):
        for name, value in values.items():
            row[places[name]] = value
    return Scores(tuple(found), tuple(missing), tuple(columns), rows, tuple(measures))
