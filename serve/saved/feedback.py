"""Feedback on stored answers (a rating, a corrected answer, a note) and its review.

Feedback belongs to a stored answer and is deleted with it.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, delete, func, insert, or_, select
from sqlalchemy.exc import IntegrityError

from serve.saved.database import Database
from serve.saved.opinion import Opinion, Rating, Review, ReviewDecision, ReviewState
from serve.saved.saved_error import SavedError
from serve.saved.stored_answers import MOST_LISTED
from serve.saved.tables import ANSWERS, FEEDBACK, REVIEWS

MOST_ON_AN_ANSWER = 100


@dataclass(frozen=True, slots=True)
class Feedback:
    """Opinion on a stored answer. `owner` is the name of the API key that sent it.

    `answer` is the stored answer. `review` is None until somebody has reviewed the feedback.
    """

    id: str
    owner: str
    created: float
    answer_id: str
    opinion: Opinion
    answer: dict[str, Any]
    review: Review | None = None


class FeedbackStore:
    """Feedback in `database`. Every method may raise SavedError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, answer_id: str, opinion: Opinion, owner: str) -> Feedback:
        """Store an opinion; a repeated opinion of the same owner on an answer is stored once.

        Raises SavedError with status 404 if the answer is not stored, and 409 if it has
        `MOST_ON_AN_ANSWER` pieces of feedback already.
        """
        said = asdict(opinion)
        digest = sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
        same = and_(
            FEEDBACK.c.answer_id == answer_id,
            FEEDBACK.c.owner == owner,
            FEEDBACK.c.digest == digest,
        )
        row = {
            "id": uuid.uuid4().hex,
            "answer_id": answer_id,
            "owner": owner,
            "created": time.time(),
            "digest": digest,
            "record": said,
        }
        try:
            with self._database.write() as connection:
                found = connection.execute(_joined().where(same)).first()
                if found is not None:
                    return _feedback(found)
                if connection.scalar(select(ANSWERS.c.id).where(ANSWERS.c.id == answer_id)) is None:
                    raise _no_answer(answer_id)
                on_it = select(func.count()).where(FEEDBACK.c.answer_id == answer_id)
                if (connection.scalar(on_it) or 0) >= MOST_ON_AN_ANSWER:
                    raise SavedError(
                        f"answer {answer_id} has {MOST_ON_AN_ANSWER} pieces of feedback already; "
                        "delete some",
                        409,
                    )
                connection.execute(insert(FEEDBACK).values(row))
        except IntegrityError:
            # On Postgres, another process may have stored the same opinion or deleted the answer.
            pass
        with self._database.read() as connection:
            stored = connection.execute(_joined().where(same)).first()
        if stored is None:
            raise _no_answer(answer_id)
        return _feedback(stored)

    def list(
        self,
        owner: str | None,
        limit: int,
        before: str = "",
        *,
        rating: Rating | None = None,
        state: ReviewState | None = None,
    ) -> Sequence[Feedback]:
        """Return feedback by `owner` or on its answers, newest first; None means all owners.

        `rating` and `state` filter the feedback, `before` is the id of the last item of the
        previous page. Raises SavedError with status 404 if `before` does not exist.
        """
        seen = _joined()
        if owner is not None:
            seen = seen.where(or_(FEEDBACK.c.owner == owner, ANSWERS.c.owner == owner))
        wanted = seen.where(*_kept_by(rating, state))
        with self._database.read() as connection:
            if before:
                # Search without the filters: its review state may have changed since then.
                place = connection.execute(seen.where(FEEDBACK.c.id == before)).first()
                if place is None:
                    raise _absent(before)
                at, id_ = FEEDBACK.c.created, FEEDBACK.c.id
                same = and_(at == place.created, id_ < place.id)
                wanted = wanted.where(or_(at < place.created, same))
            newest = wanted.order_by(FEEDBACK.c.created.desc(), FEEDBACK.c.id.desc())
            rows = connection.execute(newest.limit(min(limit, MOST_LISTED))).all()
        return [_feedback(row) for row in rows]

    def all(
        self, owner: str | None = None, *, state: ReviewState | None = None
    ) -> Sequence[Feedback]:
        """Return all feedback that `list` would return over all pages, oldest first."""
        found: list[Feedback] = []
        while page := self.list(owner, MOST_LISTED, found[-1].id if found else "", state=state):
            found += page
        return found[::-1]

    def review(self, feedback_id: str, state: ReviewDecision | None, reviewer: str) -> Feedback:
        """Accept or reject feedback, or reopen it with None; replaces an earlier decision.

        Raises SavedError with status 404 if the feedback does not exist.
        """
        one = _joined().where(FEEDBACK.c.id == feedback_id)
        row = {"state": state, "reviewer": reviewer, "reviewed": time.time()}
        with self._database.write() as connection:
            # Lock the row, so that concurrent reviews run one after the other.
            held = select(FEEDBACK.c.id).where(FEEDBACK.c.id == feedback_id).with_for_update()
            if connection.scalar(held) is None:
                raise _absent(feedback_id)
            connection.execute(delete(REVIEWS).where(REVIEWS.c.feedback_id == feedback_id))
            if state is not None:
                connection.execute(insert(REVIEWS).values(feedback_id=feedback_id, **row))
            return _feedback(connection.execute(one).one())

    def delete(self, feedback_id: str, owner: str) -> None:
        """Delete feedback. Its author and the owner of its answer may do so.

        Raises SavedError with status 404 for anybody else or if the feedback does not exist.
        """
        of_own = select(ANSWERS.c.id).where(ANSWERS.c.owner == owner)
        may = or_(FEEDBACK.c.owner == owner, FEEDBACK.c.answer_id.in_(of_own))
        with self._database.write() as connection:
            gone = connection.execute(delete(FEEDBACK).where(FEEDBACK.c.id == feedback_id, may))
            if not gone.rowcount:
                raise _absent(feedback_id)
        self._database.overwrite_deleted()


def _joined() -> Select[Any]:
    review = (REVIEWS.c.state, REVIEWS.c.reviewer, REVIEWS.c.reviewed)
    columns = (*FEEDBACK.c, ANSWERS.c.record.label("stored"), *review)
    joined = select(*columns).join(ANSWERS, FEEDBACK.c.answer_id == ANSWERS.c.id)
    return joined.outerjoin(REVIEWS, FEEDBACK.c.id == REVIEWS.c.feedback_id)


def _kept_by(rating: Rating | None, state: ReviewState | None) -> list[ColumnElement[bool]]:
    kept = [FEEDBACK.c.record["rating"].as_string() == rating] if rating else []
    match state:
        case "open":
            kept.append(REVIEWS.c.state.is_(None))
        case "reviewed":
            kept.append(REVIEWS.c.state.is_not(None))
        case "accepted" | "rejected":
            kept.append(REVIEWS.c.state == state)
    return kept


def _feedback(row: Row[Any]) -> Feedback:
    said = dict(row.record)
    said["pmids"] = tuple(said["pmids"])
    opinion = Opinion(**said)
    answer = row.stored["answer"]
    review = Review(row.state, row.reviewer, row.reviewed) if row.state else None
    return Feedback(row.id, row.owner, row.created, row.answer_id, opinion, answer, review)


def _no_answer(answer_id: str) -> SavedError:
    return SavedError(f"no stored answer {answer_id:.64} exists", 404)


def _absent(feedback_id: str) -> SavedError:
    return SavedError(f"no feedback {feedback_id:.64} exists; it may have been deleted", 404)
