"""Faults of the database of saved questions, at a chosen statement or commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy.engine.default import DefaultDialect

from tests.faults.inject import Killed

# A lost link stays lost. A lost commit reply means that the transaction was committed.
DATABASE_FAULTS = ("kill", "lost link", "lost commit reply", "database full")
READS = ("SELECT", "BEGIN", "PRAGMA")


class DatabaseFaults:
    """Inject `fault` at moment number `at`; `fired` says whether it happened."""

    def __init__(self, fault: str, at: int) -> None:
        self.fired = self.dead = False
        self._moments = 0
        self._fault, self._at = fault, at

    def moment(self) -> bool:
        """Count a moment and return True from the fault on; raises Killed for a killed process."""
        if self.dead:
            raise Killed
        self._moments += 1
        due = self._moments >= self._at
        if due and self._fault == "kill":
            self.fired = self.dead = True
            raise Killed
        return due

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Count the statements and commits of every database within the block as moments."""
        execute, commit = DefaultDialect.do_execute, DefaultDialect.do_commit

        def do_execute(dialect: Any, cursor: Any, statement: str, *rest: Any) -> None:
            if self.moment():
                self._refuse(not statement.startswith(READS))
            execute(dialect, cursor, statement, *rest)

        def do_commit(dialect: Any, connection: Any) -> None:
            if not self.moment():
                commit(dialect, connection)
                return
            writes = connection.in_transaction
            self._refuse(writes)
            commit(dialect, connection)
            if self._fault == "lost commit reply" and writes and not self.fired:
                self._fail("the server closed the connection")

        with (
            patch.object(DefaultDialect, "do_execute", do_execute),
            patch.object(DefaultDialect, "do_commit", do_commit),
        ):
            yield

    def _refuse(self, writes: bool) -> None:
        if self._fault == "lost link":
            self._fail("unable to open database file")
        if self._fault == "database full" and writes:
            self._fail("database or disk is full")

    def _fail(self, said: str) -> None:
        self.fired = True
        raise sqlite3.OperationalError(said)
