"""Replies of the routes of stored answers and of feedback, which the Python client reads, too."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from cluster.answers import Answer, ExactAnswer
from serve.saved.compare_answers import Comparison
from serve.saved.opinion import Decision, Rating


class AnswerSummary(BaseModel):
    """A stored answer in a list. Times are ISO 8601 in UTC."""

    id: str
    created: str
    question: str
    verdict: str
    system: str
    index_version: str


class AnswerList(BaseModel):
    """The answers that were stored with this key, newest first.

    `next` is what to give as `before` for those that follow, "" at the end.
    """

    answers: list[AnswerSummary]
    next: str


class KeptAnswer(BaseModel):
    """A stored answer as it was given, with what it came of.

    `mine` tells whether this key stored it, and may delete it. It is kept until `expires`, or until
    it is deleted if there is feedback on it.
    """

    id: str
    created: str
    expires: str
    mine: bool
    request: dict[str, Any]
    preset: dict[str, Any]
    models: dict[str, str]
    answer: dict[str, Any]


class Replay(BaseModel):
    """The stored answer, the one that the same request has now, and how they compare."""

    stored: dict[str, Any]
    now: Answer
    comparison: Comparison


class GivenFeedback(BaseModel):
    """Feedback with the question and the verdict that it is about.

    `mine` tells whether it came with this key. `state` is `open` until a reviewer accepts or
    rejects the feedback, at `reviewed`; `reviewed_by` is the name of the reviewer's key, which
    reviewers alone are told. Times are ISO 8601 in UTC.
    """

    id: str
    created: str
    mine: bool
    answer_id: str
    question: str
    type: str
    verdict: str
    system: str
    index_version: str
    rating: Rating
    ideal: str
    exact: ExactAnswer
    pmids: list[int]
    note: str
    state: Decision | Literal["open"] = "open"
    reviewed: str | None = None
    reviewed_by: str = ""


class FeedbackList(BaseModel):
    """What this key said and what was said of its answers, newest first; for a reviewer, all.

    `may_review` tells whether this key is a reviewer's. `next` is what to give as `before` for
    those that follow, "" at the end.
    """

    feedback: list[GivenFeedback]
    next: str
    may_review: bool = False


class Gold(BaseModel):
    """A BioASQ gold file."""

    questions: list[dict[str, Any]]
