"""Store saved questions and the history of their checks."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Row, and_, delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from cluster.answers import Answer
from serve.saved.database import Database, may_begin
from serve.saved.saved_error import SavedError
from serve.saved.tables import CHECKS, WATCHES
from serve.saved.watches.deliveries import queue_delivery
from serve.saved.watches.source_records import SourceRecord
from serve.saved.watches.watch_diff import WatchDiff

DIFF = TypeAdapter(WatchDiff)
SOURCES = TypeAdapter(dict[int, SourceRecord])
# Checks kept for one question: more than a year of daily index versions.
MOST_CHECKS = 500
MOST_WAIT_S = 3600.0
FIRST_WAIT_S = 60.0
MOST_ERROR = 500


@dataclass(frozen=True, slots=True)
class Watch:
    """Saved question. `request` has the fields of `/v1/answer`.

    `checked`, `version`, `answer` and `sources` are the time (in seconds since 1970, 0 for never),
    the index version and the results of the last successful check. `failures` counts the failed
    checks since then, and `error` is the reason of the last one, or "".
    """

    id: str
    owner: str
    created: float
    question: str
    request: Mapping[str, Any]
    webhook: str
    checked: float
    version: str
    failures: int
    error: str
    answer: Mapping[str, Any] | None
    sources: Mapping[int, SourceRecord]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a saved question. `diff` is None if there is nothing to compare with.

    The feed and the webhook report `notable` checks only.
    """

    id: str
    version: str
    last_source: str
    created: float
    notable: bool
    diff: WatchDiff | None


class WatchStore:
    """Saved questions in `database`, at most `most` per owner.

    Every method may raise SavedError.
    """

    def __init__(self, database: Database, most: int) -> None:
        self._database = database
        self._most = most

    def add(self, owner: str, request: Mapping[str, Any], webhook: str = "") -> Watch:
        """Save a question. The same request and webhook of an owner are saved only once.

        Raises SavedError with status 409 if the owner has `most` questions already.
        """
        asked = json.dumps([dict(request), webhook], sort_keys=True)
        digest = sha256(asked.encode()).hexdigest()
        same = and_(WATCHES.c.owner == owner, WATCHES.c.digest == digest)
        row = {
            "id": uuid.uuid4().hex, "owner": owner, "digest": digest, "created": time.time(),
            "question": str(request["question"]), "request": dict(request), "webhook": webhook,
            "checked": 0.0, "version": "", "failures": 0, "error": "", "not_before": 0.0,
            "answer": None, "sources": {},
        }  # fmt: skip
        try:
            with self._database.write() as connection:
                if (found := connection.execute(select(WATCHES).where(same)).first()) is not None:
                    return _watch(found)
                count = select(func.count()).select_from(WATCHES).where(WATCHES.c.owner == owner)
                if (connection.scalar(count) or 0) >= self._most:
                    raise SavedError(
                        f"this key has {self._most:,} saved questions already; remove some", 409
                    )
                connection.execute(insert(WATCHES).values(row))
        except IntegrityError:
            # On Postgres, another process may have saved the same question concurrently.
            pass
        with self._database.read() as connection:
            return _watch(connection.execute(select(WATCHES).where(same)).one())

    def get(self, watch_id: str, owner: str | None = None) -> Watch:
        """Return a saved question of `owner`, or of any owner if None.

        Raises SavedError with status 404 if there is none.
        """
        with self._database.read() as connection:
            row = connection.execute(select(WATCHES).where(_own(watch_id, owner))).first()
        if row is None:
            raise _absent(watch_id)
        return _watch(row)

    def list(self, owner: str | None = None) -> Sequence[Watch]:
        """Return the saved questions of `owner`, or of all owners if None, newest first.

        Their answers and sources are left out.
        """
        columns = [column for column in WATCHES.c if column.name not in ("answer", "sources")]
        wanted = select(*columns).order_by(WATCHES.c.created.desc(), WATCHES.c.id)
        if owner is not None:
            wanted = wanted.where(WATCHES.c.owner == owner)
        with self._database.read() as connection:
            return [_watch(row) for row in connection.execute(wanted)]

    def delete(self, watch_id: str, owner: str | None = None) -> None:
        """Delete a saved question and its history. Arguments and errors are those of `get`."""
        with self._database.write() as connection:
            if not connection.execute(delete(WATCHES).where(_own(watch_id, owner))).rowcount:
                raise _absent(watch_id)
        self._database.overwrite_deleted()

    def checks(
        self, watch_id: str, limit: int = MOST_CHECKS, *, notable: bool = False
    ) -> Sequence[Check]:
        """Return the checks of a saved question, newest first; only notable ones if `notable`."""
        wanted = select(CHECKS).where(CHECKS.c.watch_id == watch_id)
        if notable:
            wanted = wanted.where(CHECKS.c.notable)
        newest = wanted.order_by(CHECKS.c.created.desc(), CHECKS.c.id).limit(limit)
        with self._database.read() as connection:
            return [_check(row) for row in connection.execute(newest)]

    def newest_changes(self, owner: str) -> Mapping[str, Check]:
        """Return the newest notable check of each saved question of `owner` that has one, by id."""
        own = select(WATCHES.c.id).where(WATCHES.c.owner == owner)
        notable = and_(CHECKS.c.notable, CHECKS.c.watch_id.in_(own))
        newest = func.max(CHECKS.c.created).over(partition_by=CHECKS.c.watch_id).label("newest")
        found = select(CHECKS, newest).where(notable).subquery()
        wanted = select(found).where(found.c.created == found.c.newest)
        with self._database.read() as connection:
            return {row.watch_id: _check(row) for row in connection.execute(wanted)}

    def next_due(self, version: str) -> Watch | None:
        """Return the due question not checked on index `version` whose last check is the oldest.

        Returns None if no question is due.
        """
        due = and_(_unasked_of(version), may_begin(WATCHES.c.not_before, MOST_WAIT_S))
        first = select(WATCHES).where(due).order_by(WATCHES.c.checked, WATCHES.c.id).limit(1)
        with self._database.read() as connection:
            row = connection.execute(first).first()
        return None if row is None else _watch(row)

    def waiting(self, version: str) -> int:
        """Return the number of questions that have not been checked on index `version`."""
        with self._database.read() as connection:
            counted = select(func.count()).select_from(WATCHES).where(_unasked_of(version))
            return connection.scalar(counted) or 0

    def record(
        self,
        watch: Watch,
        answer: Answer,
        sources: Mapping[int, SourceRecord],
        diff: WatchDiff | None,
    ) -> bool:
        """Store the result of a check and queue its webhook message, in one transaction.

        Returns False and stores nothing if the question was deleted or checked by another process
        after `watch` was read; otherwise the change would be reported twice.
        """
        check = Check(
            uuid.uuid4().hex,
            answer.index_version,
            answer.last_source,
            time.time(),
            diff is not None and diff.notable,
            diff,
        )
        row = {
            **{name: getattr(check, name) for name in ("id", "version", "last_source", "created")},
            "watch_id": watch.id,
            "notable": check.notable,
            "diff": None if diff is None else asdict(diff),
        }
        now = {
            "checked": check.created, "version": check.version, "failures": 0, "error": "",
            "not_before": 0.0, "answer": asdict(answer),
            "sources": {str(pmid): asdict(record) for pmid, record in sources.items()},
        }  # fmt: skip
        try:
            with self._database.write() as connection:
                # Update first: this checks that the question still exists, and locks its row.
                kept = connection.execute(update(WATCHES).where(_unasked_since(watch)).values(now))
                if not kept.rowcount:
                    return False
                connection.execute(insert(CHECKS).values(row))
                if check.notable and watch.webhook:
                    queue_delivery(connection, watch, check)
                _prune(connection, watch.id)
        except IntegrityError:
            return False
        return True

    def note_failure(self, watch: Watch, error: str) -> None:
        """Record a failed check; the wait for the retry doubles from one minute to one hour."""
        wait = min(FIRST_WAIT_S * 2.0 ** min(watch.failures, 20), MOST_WAIT_S)
        failed = {
            "failures": watch.failures + 1,
            "error": error[:MOST_ERROR],
            "not_before": time.time() + wait,
        }
        with self._database.write() as connection:
            connection.execute(update(WATCHES).where(_unasked_since(watch)).values(failed))


def _unasked_of(version: str) -> ColumnElement[bool]:
    asked = exists().where(CHECKS.c.watch_id == WATCHES.c.id, CHECKS.c.version == version)
    return ~asked


def _unasked_since(watch: Watch) -> ColumnElement[bool]:
    """Match the row of `watch` unless another process checked the question meanwhile."""
    return and_(_own(watch.id), WATCHES.c.version == watch.version)


def _own(watch_id: str, owner: str | None = None) -> ColumnElement[bool]:
    wanted = WATCHES.c.id == watch_id
    return wanted if owner is None else and_(wanted, WATCHES.c.owner == owner)


def _prune(connection: Any, watch_id: str) -> None:
    own = CHECKS.c.watch_id == watch_id
    newest = select(CHECKS.c.created).where(own).order_by(CHECKS.c.created.desc())
    oldest_kept = connection.scalar(newest.offset(MOST_CHECKS - 1).limit(1))
    if oldest_kept is not None:
        connection.execute(delete(CHECKS).where(own, CHECKS.c.created < oldest_kept))


def _watch(row: Row[Any]) -> Watch:
    found = dict(row._mapping)
    fields: dict[str, Any] = {name: found.get(name) for name in Watch.__dataclass_fields__}
    fields["sources"] = SOURCES.validate_python(found.get("sources") or {})
    return Watch(**fields)


def _check(row: Row[Any]) -> Check:
    diff = None if row.diff is None else DIFF.validate_python(row.diff)
    return Check(row.id, row.version, row.last_source, row.created, row.notable, diff)


def _absent(watch_id: str) -> SavedError:
    return SavedError(f"no saved question {watch_id:.64} exists; it may have been removed", 404)
