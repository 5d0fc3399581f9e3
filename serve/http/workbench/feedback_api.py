"""Feedback over HTTP.

POST /v1/answers/{answer_id}/feedback   GET /v1/feedback   GET /v1/feedback/gold
POST /v1/feedback/{feedback_id}/review   DELETE /v1/feedback/{feedback_id}
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import FastAPI, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from cluster.answers import ExactAnswer
from cluster.errors import InputError
from serve.batches.jobs import when
from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.contracts.request_forms import Pmid
from serve.formats.bioasq import MAX_LIST
from serve.http.middleware.request_log import asker
from serve.http.workbench.answer_forms import FeedbackList, GivenFeedback, Gold
from serve.http.workbench.answers_api import ID, AnswerId, Before, Limit
from serve.saved.export_feedback import gold_rows
from serve.saved.feedback import Feedback
from serve.saved.opinion import Opinion, Rating, ReviewDecision, ReviewState
from serve.saved.saved_error import SavedError
from serve.saved.stores import Saved

MOST_CHARACTERS = 5000
MOST_NAME = 300
MOST_SYNONYMS = 20
MOST_PMIDS = 100
FeedbackId = Annotated[str, Path(pattern=ID)]
Words = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Name = Annotated[
    str, Field(min_length=1, max_length=MOST_NAME, json_schema_extra={"pattern": r"\S"})
]
Names = Annotated[list[Name], Field(min_length=1, max_length=MOST_SYNONYMS)]
NamesOrWord = (
    Annotated[list[Names], Field(max_length=MAX_LIST)] | Annotated[str, Field(pattern="^(yes|no)$")]
)


class FeedbackRequest(BaseModel):
    """Feedback on an answer: a rating, optionally with a correction.

    `ideal` is the corrected text and `exact` the corrected exact answer: `yes` or `no`, or for a
    list or factoid question a list of items, each with its synonyms. `pmids` are the citations that
    support the corrected answer (default: those that the answer cites).
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"rating": "down", "exact": "no", "note": "Only in mice."}]
        },
    )

    rating: Rating
    ideal: Words = ""
    exact: NamesOrWord | None = None
    pmids: Annotated[list[Pmid], Field(max_length=MOST_PMIDS)] = []
    note: Words = ""

    def as_opinion(self, kind: str) -> Opinion:
        """Return the feedback as a record; raise InputError if `exact` does not fit type `kind`."""
        exact: ExactAnswer = self.exact or None
        wanted = {"yesno": "yes or no", "summary": "left out", "unknown": "left out"}
        fits = isinstance(exact, str) if kind == "yesno" else isinstance(exact, list)
        if exact is not None and (not fits or kind in ("summary", "unknown")):
            form = wanted.get(kind, "a list of items, each a list of its names")
            raise InputError(f"exact: must be {form}, as the question is of type {kind}")
        pmids = tuple(dict.fromkeys(self.pmids))
        return Opinion(self.rating, self.ideal.strip(), exact, pmids, self.note.strip())


class ReviewRequest(BaseModel):
    """Review of feedback; `open` withdraws an earlier decision."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"state": "accepted"}]}
    )

    state: ReviewDecision | Literal["open"]


RatingFilter = Annotated[Rating | None, Query(description="Only feedback with this rating.")]
StateFilter = Annotated[
    ReviewState | None,
    Query(description="Only feedback in this review state; `reviewed` means accepted or rejected."),
]
ADDED = problems(*KEY_STATUSES, 404, 409, 422, 503, 507)
LISTED = problems(*KEY_STATUSES, 404, 422, 503)
GOLD = problems(*KEY_STATUSES, 409, 422, 503)
REVIEWED = problems(*KEY_STATUSES, 403, 404, 422, 503, 507)
DELETED = {204: {"description": "Deleted."}, **problems(*KEY_STATUSES, 404, 422, 503, 507)}


def add_feedback(api: FastAPI, saved: Saved) -> None:
    """Add the routes of feedback to `api`."""

    @api.post("/v1/answers/{answer_id}/feedback", status_code=201, responses=ADDED)
    async def add(answer_id: AnswerId, request: FeedbackRequest) -> GivenFeedback:
        """Rate a stored answer, optionally with a correction."""
        stored = await asyncio.to_thread(saved.answers.get, answer_id)
        opinion = request.as_opinion(stored.answer["question"]["type"])
        return given(await asyncio.to_thread(saved.feedback.add, answer_id, opinion, asker()))

    @api.get("/v1/feedback", responses=LISTED)
    async def list_feedback(
        limit: Limit = 50,
        before: Before = "",
        rating: RatingFilter = None,
        state: StateFilter = None,
    ) -> FeedbackList:
        """List feedback given with this key or on its answers, newest first; reviewers see all."""
        reviews = is_reviewer(saved)
        found = await asyncio.to_thread(
            saved.feedback.list, seen_by(saved), limit, before, rating=rating, state=state
        )
        return FeedbackList(
            feedback=[given(item, reviews) for item in found],
            next=found[-1].id if len(found) == limit else "",
            may_review=reviews,
        )

    @api.get("/v1/feedback/gold", responses=GOLD)
    async def gold(state: StateFilter = None) -> Gold:
        """Return the approved and corrected answers of `/v1/feedback` as a BioASQ gold file.

        Rejected feedback is left out; `state=accepted` selects only accepted feedback.
        """
        found = await asyncio.to_thread(saved.feedback.all, seen_by(saved), state=state)
        return Gold(questions=gold_rows(found))

    _add_changes(api, saved)


def _add_changes(api: FastAPI, saved: Saved) -> None:
    """Add the routes that review and delete feedback to `api`."""

    @api.post("/v1/feedback/{feedback_id}/review", responses=REVIEWED)
    async def review(feedback_id: FeedbackId, request: ReviewRequest) -> GivenFeedback:
        """Accept or reject feedback for the gold file; for reviewers only."""
        if not is_reviewer(saved):
            raise SavedError(
                "this key may not review feedback; serve.saved.reviewers names the keys that may",
                403,
            )
        decision = None if request.state == "open" else request.state
        item = await asyncio.to_thread(saved.feedback.review, feedback_id, decision, asker())
        return given(item, reviews=True)

    @api.delete("/v1/feedback/{feedback_id}", status_code=204, responses=DELETED)
    async def delete(feedback_id: FeedbackId) -> Response:
        """Delete feedback given with this key or on its answers."""
        await asyncio.to_thread(saved.feedback.delete, feedback_id, asker())
        return Response(status_code=204)


def is_reviewer(saved: Saved) -> bool:
    """Return True if the request may review feedback. Without API keys, every request may."""
    return asker() in ("", *saved.settings.reviewers)


def seen_by(saved: Saved) -> str | None:
    """Return the owner whose feedback the request may see, or None if it may see all."""
    return None if is_reviewer(saved) else asker()


def given(item: Feedback, reviews: bool = False) -> GivenFeedback:
    """Return the response form of feedback; with `reviews`, including the reviewer's name."""
    answer, review = item.answer, item.review
    return GivenFeedback(
        id=item.id,
        created=when(item.created) or "",
        mine=item.owner == asker(),
        answer_id=item.answer_id,
        question=answer["question"]["body"],
        type=answer["question"]["type"],
        **{name: answer[name] for name in ("verdict", "system", "index_version")},
        **asdict(item.opinion),
        state=review.state if review else "open",
        reviewed=when(review.at) if review else None,
        reviewed_by=review.by if review and reviews else "",
    )
