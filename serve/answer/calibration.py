"""Probability that an answer is right, and the threshold that meets an error budget.

The weights and the calibration points are learned by `citeray train calibration` on questions
that the reader was not trained on. The threshold is chosen by conformal risk control
(Angelopoulos, Bates, Fisch, Lei and Schuster 2024, "Conformal Risk Control"). The loss of a stated
answer is its error minus the budget. This loss is not monotone in the threshold, so the guarantee,
which holds on average over calibrations, is only approximate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cluster.errors import InputError
from cluster.settings.read_config import CONFIGS

DEFAULT = CONFIGS / "calibration" / "reader.json"
# Name of the reader that DEFAULT was made for.
SHIPPED = "citeray:reader"
# Question type whose calibration is also used for types without a calibration.
OTHERS = "summary"
# Names of the features that `decide_verdict.features_of` computes for an answer.
Feature = Literal[
    "share", "said", "lean", "relevance", "salience", "cosine", "name", "margin", "mean_name"
]
FEATURES = get_args(Feature)


class TypeCalibration(BaseModel):
    """Calibration of one type of question.

    `weights` are the weights of a logistic regression over `features`, the bias first. `points`
    are pairs (probability, loss) of held-out questions; the loss is 0 if right and 1 if wrong.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    features: tuple[Feature, ...]
    weights: tuple[float, ...] = Field(min_length=1)
    points: tuple[tuple[float, float], ...]

    @model_validator(mode="after")
    def _has_a_weight_for_each_feature(self) -> Self:
        if len(self.weights) != len(self.features) + 1:
            raise ValueError("weights: needs the bias and one weight for each feature")
        return self


class Calibration(BaseModel):
    """Calibrations by type of question; `OTHERS` must be among them.

    `related` is the lowest relevance (0 to 1) of the best article if an article of the collection
    is about the question; 0 if it was not calibrated. `no_weight` corrects a reader that tends to
    one side of a yes/no question: the evidence's weight for "no" is multiplied by it.
    """

    model_config = ConfigDict(frozen=True)

    types: dict[str, TypeCalibration]
    related: float = Field(default=0.0, ge=0, le=1)
    no_weight: float = Field(default=1.0, gt=0, le=1000)

    @model_validator(mode="after")
    def _has_others(self) -> Self:
        if OTHERS not in self.types:
            raise ValueError(f"types: {OTHERS} is missing")
        return self

    def probability(self, kind: str, features: Mapping[str, float]) -> float:
        """Return the probability that the answer to a question of type `kind` is right.

        Raises KeyError for a type or a feature that is missing.
        """
        known = self.types[kind]
        bias, *weights = known.weights
        total = bias + sum(
            weight * features[name] for name, weight in zip(known.features, weights, strict=True)
        )
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))

    def threshold(self, kind: str, max_wrong: float) -> float:
        """Return the lowest probability at which an answer is stated.

        It is infinite if no threshold meets the budget, and 0 for a budget of 1.
        """
        if max_wrong >= 1:
            return 0.0
        return risk_threshold(self.types[kind].points, max_wrong)


@lru_cache(maxsize=256)
def risk_threshold(points: Sequence[tuple[float, float]], max_wrong: float) -> float:
    """Return the lowest threshold at which conformal risk control meets the budget `max_wrong`.

    It is the lowest probability p for which (wrong + 1) / (stated + 1) is at most the budget, where
    `stated` is the number of points with a probability of at least p and `wrong` is the sum of
    their losses. The result is infinite if this holds for no p.
    """
    chosen, wrong = math.inf, 0.0
    ranked = sorted(points, reverse=True)
    for stated, (probability, loss) in enumerate(ranked, start=1):
        wrong += loss
        # Answers of equal probability are stated together: compare after the last of them.
        is_last = stated == len(ranked) or ranked[stated][0] < probability
        if is_last and wrong + 1 <= max_wrong * (stated + 1):
            chosen = probability
    return chosen


@lru_cache(maxsize=8)
def read_calibration(path: Path = DEFAULT) -> Calibration:
    """Read a calibration; raises InputError for a file that is missing or invalid."""
    try:
        return Calibration.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: not a calibration of answers ({str(error)[:200]}). Make one with "
            '"citeray train calibration".'
        ) from error
