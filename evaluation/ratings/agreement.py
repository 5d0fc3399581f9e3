"""What two people rated, and how far they agree.

Agreement is Cohen's kappa with quadratic weights (Cohen 1968): 1 for two people who always agree,
0 for what their own frequencies of each rating would give by chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cluster.errors import InputError, cut
from evaluation.ratings.rating_sheet import CRITERIA
from evaluation.ratings.ratings_files import Ratings

Key = Mapping[str, str]
"""The run of each answer, by the answer's id on the sheet."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two people on one criterion, over the `answers` that both rated.

    `equal` and `within_one` are shares of those. They are NaN where both rated none, and
    `kappa` also where both gave one and the same rating throughout.
    """

    criterion: str
    answers: int
    equal: float
    within_one: float
    kappa: float


def check_pair(one: Ratings, other: Ratings) -> None:
    """Raises InputError unless two people rated one sheet."""
    if one.sheet != other.sheet:
        raise InputError(
            f"{one.rater} and {other.rater} rated two different sheets; both must rate one"
        )
    if one.rater == other.rater:
        raise InputError(f"both files are by {one.rater!r}; name those of two people")


def mean_ratings(raters: Sequence[Ratings], key: Key) -> dict[str, dict[str, float]]:
    """Run -> criterion -> the mean of all ratings of its answers; NaN where it has none.

    Raises InputError for an answer that the key does not have.
    """
    found: dict[str, dict[str, list[int]]] = {
        run: {criterion: [] for criterion in CRITERIA} for run in sorted(set(key.values()))
    }
    for ratings in raters:
        for answer, own in ratings.given.items():
            if answer not in key:
                raise InputError(
                    f"the ratings of {ratings.rater} have an answer {cut(answer, 40)}, which the "
                    "key has not; name the key of their sheet"
                )
            for criterion, value in own.items():
                found[key[answer]][criterion].append(value)
    return {
        run: {criterion: _mean(values) for criterion, values in own.items()}
        for run, own in found.items()
    }


def agree(one: Ratings, other: Ratings) -> list[Agreement]:
    """How far two people agree on each criterion."""
    return [_agree_on(criterion, one, other) for criterion in CRITERIA]


def _agree_on(criterion: str, one: Ratings, other: Ratings) -> Agreement:
    pairs = [
        (own[criterion], theirs[criterion])
        for answer, own in one.given.items()
        if criterion in own and criterion in (theirs := other.given.get(answer, {}))
    ]
    return Agreement(
        criterion,
        len(pairs),
        _mean([first == second for first, second in pairs]),
        _mean([abs(first - second) <= 1 for first, second in pairs]),
        weighted_kappa(pairs),
    )


def weighted_kappa(pairs: Sequence[tuple[int, int]]) -> float:
    """Cohen's kappa with quadratic weights; NaN where chance alone would agree always."""
    if not pairs:
        return math.nan
    first, second = np.array(pairs, dtype=float).T
    observed = ((first - second) ** 2).mean()
    expected = ((first[:, None] - second[None, :]) ** 2).mean()
    return float(1 - observed / expected) if expected else math.nan


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
