"""What somebody says of an answer, and what a reviewer made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cluster.answers import ExactAnswer

Rating = Literal["up", "down"]
Decision = Literal["accepted", "rejected"]
# What feedback can be filtered by; "reviewed" is either decision.
ReviewState = Literal["open", "reviewed", "accepted", "rejected"]


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody says of an answer; "", None and () for what is left as it was answered.

    `pmids` are the citations that support the corrected answer.
    """

    rating: Rating
    ideal: str = ""
    exact: ExactAnswer = None
    pmids: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """A reviewer's decision: `by` is the name of their key, "" without one, `at` when it was made.

    Times are in seconds since 1970.
    """

    state: Decision
    by: str
    at: float
