"""Opinions on answers, and the decisions of their reviewers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cluster.answers import ExactAnswer

Rating = Literal["up", "down"]
ReviewDecision = Literal["accepted", "rejected"]
# Filter for feedback; "reviewed" matches both decisions.
ReviewState = Literal["open", "reviewed", "accepted", "rejected"]


@dataclass(frozen=True, slots=True)
class Opinion:
    """Rating of an answer with optional corrections; "", None and () mean no correction.

    `pmids` are the citations that support the corrected answer.
    """

    rating: Rating
    ideal: str = ""
    exact: ExactAnswer = None
    pmids: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """Decision of a reviewer. `by` is the name of the reviewer's API key, "" if there is none.

    `at` is the time of the decision in seconds since 1970.
    """

    state: ReviewDecision
    by: str
    at: float
