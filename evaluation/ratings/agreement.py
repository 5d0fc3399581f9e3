"""Mean ratings of two raters, and their agreement.

Agreement is Cohen's kappa with quadratic weights (Cohen 1968): 1 if the raters always agree, 0 for
the agreement that their rating frequencies would give by chance.
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
    """Agreement of two raters on one criterion, over the `answers` that both rated.

    `equal` and `within_one` are shares of those answers; they are NaN if there are none. `kappa` is
    also NaN if both raters gave the same single rating throughout.
    """

    criterion: str
    answers: int
    equal: float
    within_one: float
    kappa: float


def check_pair(one: Ratings, other: Ratings) -> None:
    """Raise InputError unless two people rated the same sheet."""
    if one.sheet != other.sheet:
        raise InputError(
            f"{one.rater} and {other.rater} rated two different sheets; both must rate one"
        )
    if one.rater == other.rater:
        raise InputError(f"both files are by {one.rater!r}; name those of two people")


def mean_ratings(raters: Sequence[Ratings], key: Key) -> dict[str, dict[str, float]]:
    """Return run -> criterion -> mean of all ratings of the run's answers; NaN without ratings.

    Raises InputError for an answer that is not in the key.
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
    """Return the agreement of two raters on each criterion."""
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
    """Return Cohen's kappa with quadratic weights; NaN if chance agreement is always perfect."""
    if not pairs:
        return math.nan
    first, second = np.array(pairs, dtype=float).T
    observed = ((first - second) ** 2).mean()
    expected = ((first[:, None] - second[None, :]) ** 2).mean()
    return float(1 - observed / expected) if expected else math.nan


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
