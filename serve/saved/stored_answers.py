"""Stored answers, each with its request, preset and models so that it can be asked again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select

from cluster.answers import Answer
from serve.saved.database import Database
from serve.saved.saved_error import SavedError
from serve.saved.tables import ANSWERS, FEEDBACK

MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class AskedWith:
    """Request of an answer, with the settings and models that the server used.

    `preset` has the settings of the preset, `models` maps each use of a model to its name.
    """

    request: Mapping[str, Any]
    preset: Mapping[str, Any]
    models: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """Stored answer. `owner` is the name of the API key, "" if the server has no keys.

    `created` is in seconds since 1970.
    """

    id: str
    owner: str
    created: float
    asked: AskedWith
    answer: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """Summary of a stored answer in a list."""

    id: str
    created: float
    question: str
    verdict: str
    system: str
    index_version: str


class AnswerStore:
    """Stored answers in `database`: at most `most` per owner, kept for `keep_days`.

    An answer with feedback does not expire. Every method may raise SavedError.
    """

    def __init__(self, database: Database, most: int, keep_days: float) -> None:
        self._database = database
        self._most = most
        self.keep_s = keep_days * 86_400

    def keep(self, answer: Answer, asked: AskedWith, owner: str) -> Answer:
        """Store the answer and return it with its id.

        Raises SavedError with status 409 if the owner has `most` answers already.
        """
        kept = replace(answer, answer_id=uuid.uuid4().hex)
        row = {
            "id": kept.answer_id,
            "owner": owner,
            "created": time.time(),
            "question": answer.question.body,
            "verdict": answer.verdict,
            "system": answer.system,
            "index_version": answer.index_version,
            "record": {**asdict(asked), "answer": asdict(kept)},
        }
        with self._database.write() as connection:
            if self._count(connection, owner) >= self._most:
                raise SavedError(
                    f"{self._most:,} answers are stored for this key already; delete some", 409
                )
            connection.execute(insert(ANSWERS).values(row))
        return kept

    def _count(self, connection: Connection, owner: str) -> int:
        counted = select(func.count()).select_from(ANSWERS).where(ANSWERS.c.owner == owner)
        return connection.scalar(counted) or 0

    def get(self, answer_id: str) -> StoredAnswer:
        """Return the answer with this id, of any owner.

        Raises SavedError with status 404 if it does not exist.
        """
        with self._database.read() as connection:
            row = connection.execute(select(ANSWERS).where(ANSWERS.c.id == answer_id)).first()
        if row is None:
            raise _absent(answer_id)
        record = dict(row.record)
        answer = record.pop("answer")
        return StoredAnswer(row.id, row.owner, row.created, AskedWith(**record), answer)

    def list(self, owner: str, limit: int, before: str = "") -> Sequence[AnswerRow]:
        """Return the owner's answers, newest first, starting after the id `before`.

        Raises SavedError with status 404 if the owner has no answer `before`.
        """
        columns = [ANSWERS.c[name] for name in AnswerRow.__dataclass_fields__]
        wanted = select(*columns).where(ANSWERS.c.owner == owner)
        with self._database.read() as connection:
            if before:
                at = select(ANSWERS.c.created, ANSWERS.c.id).where(
                    ANSWERS.c.id == before, ANSWERS.c.owner == owner
                )
                place = connection.execute(at).first()
                if place is None:
                    raise _absent(before)
                wanted = wanted.where(_older(place.created, place.id))
            newest = wanted.order_by(ANSWERS.c.created.desc(), ANSWERS.c.id.desc())
            rows = connection.execute(newest.limit(min(limit, MOST_LISTED))).all()
        return [AnswerRow(*row) for row in rows]

    def delete(self, answer_id: str, owner: str) -> None:
        """Delete an answer of the owner together with its feedback.

        Raises SavedError with status 404 if the owner has no such answer.
        """
        with self._database.write() as connection:
            own = and_(ANSWERS.c.id == answer_id, ANSWERS.c.owner == owner)
            if not connection.execute(delete(ANSWERS).where(own)).rowcount:
                raise _absent(answer_id)
        self._database.overwrite_deleted()

    def remove_expired(self) -> int:
        """Delete expired answers that have no feedback, and return their number."""
        judged = select(FEEDBACK.c.answer_id)
        old = ANSWERS.c.created < time.time() - self.keep_s
        with self._database.write() as connection:
            gone = connection.execute(delete(ANSWERS).where(old, ANSWERS.c.id.not_in(judged)))
        if gone.rowcount:
            self._database.overwrite_deleted()
        return gone.rowcount


def _older(created: float, id_: str) -> ColumnElement[bool]:
    same = and_(ANSWERS.c.created == created, ANSWERS.c.id < id_)
    return or_(ANSWERS.c.created < created, same)


def _absent(answer_id: str) -> SavedError:
    return SavedError(
        f"no stored answer {answer_id:.64} exists; it may have been deleted or have expired", 404
    )
