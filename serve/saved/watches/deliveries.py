"""Queue of webhook messages; a message is queued in the transaction that stores its check."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Connection, Select, and_, insert, select, update

from serve.batches.jobs import when
from serve.saved.database import Database, may_begin
from serve.saved.tables import DELIVERIES
from serve.saved.watches.watch_diff import diff_words

if TYPE_CHECKING:
    from serve.saved.watches.watch_store import Check, Watch

WAITING, DELIVERED, GIVEN_UP = "waiting", "delivered", "given up"
# The wait between tries doubles from FIRST_WAIT_S to MOST_WAIT_S seconds.
MOST_TRIES = 12
FIRST_WAIT_S = 30.0
MOST_WAIT_S = 6 * 3600.0
MOST_ERROR = 300


@dataclass(frozen=True, slots=True)
class Delivery:
    """Message for a webhook. Its `id` stays the same in every retry."""

    id: str
    watch_id: str
    url: str
    body: str
    created: float
    tries: int
    state: str
    error: str


def queue_delivery(connection: Connection, watch: Watch, check: Check) -> None:
    """Queue a message about `check` for the webhook of `watch`, within the open transaction."""
    message = {
        "type": "watch.changed",
        "watch": watch.id,
        "check": check.id,
        "question": watch.question,
        "index_version": check.version,
        "last_source": check.last_source,
        "created": when(check.created),
        "changes": diff_words(check.diff),
        "diff": None if check.diff is None else asdict(check.diff),
    }
    row = {
        "id": uuid.uuid4().hex, "watch_id": watch.id, "url": watch.webhook,
        "body": json.dumps(message, ensure_ascii=False), "created": check.created,
        "due": check.created, "tries": 0, "state": WAITING, "error": "",
    }  # fmt: skip
    connection.execute(insert(DELIVERIES).values(row))


class DeliveryStore:
    """Message queue in `database`. Every method may raise SavedError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, limit: int = 20) -> Sequence[Delivery]:
        """Return at most `limit` waiting messages that are due, the longest due first."""
        may = and_(DELIVERIES.c.state == WAITING, may_begin(DELIVERIES.c.due, MOST_WAIT_S))
        return self._read(select(*_told()).where(may).order_by(DELIVERIES.c.due).limit(limit))

    def last_of(self, watch_id: str) -> Delivery | None:
        """Return the newest message of a saved question, or None."""
        own = select(*_told()).where(DELIVERIES.c.watch_id == watch_id)
        newest = self._read(own.order_by(DELIVERIES.c.created.desc()).limit(1))
        return newest[0] if newest else None

    def delivered(self, delivery: Delivery) -> None:
        """Record a successful delivery."""
        self._note(delivery, tries=delivery.tries + 1, state=DELIVERED, error="")

    def failed(self, delivery: Delivery, error: str) -> None:
        """Schedule a retry with exponential back-off, or give up after `MOST_TRIES` tries."""
        tries = delivery.tries + 1
        wait = min(FIRST_WAIT_S * 2.0**delivery.tries, MOST_WAIT_S)
        state = GIVEN_UP if tries >= MOST_TRIES else WAITING
        due = time.time() + wait
        self._note(delivery, tries=tries, state=state, error=error[:MOST_ERROR], due=due)

    def _note(self, delivery: Delivery, **values: object) -> None:
        own = DELIVERIES.c.id == delivery.id
        with self._database.write() as connection:
            connection.execute(update(DELIVERIES).where(own).values(values))

    def _read(self, wanted: Select[Any]) -> Sequence[Delivery]:
        with self._database.read() as connection:
            return [Delivery(*row) for row in connection.execute(wanted)]


def _told() -> list[Column[Any]]:
    return [DELIVERIES.c[name] for name in Delivery.__dataclass_fields__]
