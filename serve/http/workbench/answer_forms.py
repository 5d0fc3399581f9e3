"""Response models of stored answers and feedback, shared with the Python client."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from cluster.answers import Answer, ExactAnswer
from serve.saved.compare_answers import Comparison
from serve.saved.opinion import Rating, ReviewDecision
from serve.saved.watches.source_records import SourceChange


class AnswerSummary(BaseModel):
    """Summary of a stored answer. Times are ISO 8601 in UTC."""

    id: str
    created: str
    question: str
    verdict: str
    system: str
    index_version: str


class AnswerList(BaseModel):
    """Answers stored with this key, newest first.

    `next` is the value of `before` for the next page, or "" on the last page.
    """

    answers: list[AnswerSummary]
    next: str


class AnswerChanges(BaseModel):
    """Changes of an answer's sources since it was stored.

    `changed` says in a few words what changed ("1 retraction"), or "" if nothing did; `sources`
    are the records that were retracted, corrected, doubted or deleted.
    """

    changed: str
    sources: list[SourceChange]


class KeptAnswer(BaseModel):
    """Stored answer with its request, preset and models.

    `mine` is true if this key stored the answer and may delete it. The answer is kept until
    `expires`, or until it is deleted if there is feedback on it.
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
    """Stored answer, the current answer to the same request, and their comparison."""

    stored: dict[str, Any]
    now: Answer
    comparison: Comparison


class GivenFeedback(BaseModel):
    """Feedback with the question and verdict of its answer.

    `mine` is true if it was given with this key. `state` is `open` until a reviewer accepts or
    rejects the feedback; `reviewed` is the time of that decision. `reviewed_by` is the name of the
    reviewer's key and is shown to reviewers only. Times are ISO 8601 in UTC.
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
    state: ReviewDecision | Literal["open"] = "open"
    reviewed: str | None = None
    reviewed_by: str = ""


class FeedbackList(BaseModel):
    """Feedback given with this key or on its answers, newest first; for a reviewer, all feedback.

    `may_review` is true for a reviewer's key. `next` is the value of `before` for the next page,
    or "" on the last page.
    """

    feedback: list[GivenFeedback]
    next: str
    may_review: bool = False


class Gold(BaseModel):
    """BioASQ gold file."""

    questions: list[dict[str, Any]]
