"""Database of saved answers, feedback and questions: SQLite or Postgres.

Several processes may share it. A write is one transaction, which is on disk when its `with` block
ends. In SQLite, deleted rows are overwritten, so that they cannot be recovered.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    create_engine,
    event,
    insert,
    or_,
    select,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import IntegrityError, NoSuchModuleError, SQLAlchemyError

from cluster.errors import InputError, StorageError, one_line
from cluster.storage.disk_faults import explain_disk_faults
from serve.saved.saved_error import SavedError
from serve.saved.tables import FACTS, METADATA, SCHEMA

# How many seconds a write waits for writes of other processes.
BUSY_S = 30.0
RETRY_S = 5
# Key of the Postgres advisory lock; arbitrary, but other programs must not use the same number.
SCHEMA_LOCK = 0x43495445
PRAGMAS = (
    # An acknowledged commit survives a crash of the machine.
    "PRAGMA synchronous=FULL",
    "PRAGMA secure_delete=ON",
    "PRAGMA foreign_keys=ON",
)


def may_begin(column: ColumnElement[float], most_wait_s: float) -> ColumnElement[bool]:
    """Return the SQL condition that the start time in `column` has passed.

    Times are at most `most_wait_s` in the future when they are written. A later time means that
    the clock was set back since then, so it counts as passed.
    """
    now = time.time()
    return or_(column <= now, column > now + most_wait_s)


class Database:
    """Database at `url`, opened and created at its first use. Thread-safe and process-safe.

    Every method raises SavedError, with status 503 if the database cannot be reached or is busy,
    and 507 if it cannot be written.
    """

    def __init__(self, url: str) -> None:
        self._url = make_url(url)
        if self._url.drivername == "postgresql":
            # SQLAlchemy's default driver is psycopg2, which is not installed with CiteRay.
            self._url = self._url.set(drivername="postgresql+psycopg")
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        """Return True if the database is an SQLite file."""
        return self._url.get_backend_name() == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction for reading. On SQLite, its queries all see the same snapshot."""
        with self._naming_faults(), self._opened().connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction; commit it at the end of the block, or roll it back on an error."""
        with self._naming_faults():
            engine = self._opened().execution_options(write=True)
            with engine.connect() as connection, connection.begin():
                yield connection

    def overwrite_deleted(self) -> None:
        """Truncate SQLite's write-ahead log, which may still contain deleted rows.

        Call it after a deletion. It does nothing on Postgres.
        """
        if self.is_sqlite:
            with self._naming_faults():
                raw = self._opened().raw_connection()
                try:
                    raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                finally:
                    raw.close()

    def close(self) -> None:
        """Close the connections; the next use opens the database again."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _opened(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._open()
            return self._engine

    def _open(self) -> Engine:
        if not self.is_sqlite:
            engine = _postgres(self._url)
            with engine.begin() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": SCHEMA_LOCK})
                _make_tables(connection)
            return engine
        path = Path(self._url.database or "")
        with explain_disk_faults(path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(f"{path}.lock", timeout=BUSY_S, mode=0o600):
                # SQLite gives its other files the permissions of the database file.
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
                engine = _sqlite(self._url)
                with engine.execution_options(write=True).begin() as connection:
                    _make_tables(connection)
        return engine

    @contextmanager
    def _naming_faults(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            # Callers handle conflicts with rows that other processes wrote.
            raise
        except StorageError as error:
            raise SavedError(str(error), 507) from error
        except (SQLAlchemyError, OSError) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> SavedError:
        url = self._url.render_as_string(hide_password=True)
        said = one_line(str(getattr(error, "orig", None) or error))
        if any(words in said for words in ("disk is full", "readonly", "disk I/O")):
            return SavedError(f"{url}: cannot be written: {said}; free space there", 507)
        return SavedError(f"{url}: cannot be used now: {said}; try again", 503, RETRY_S)


def _sqlite(url: URL) -> Engine:
    # Hide parameters: error messages would otherwise put stored texts into the logs.
    engine = create_engine(
        url, hide_parameters=True, connect_args={"timeout": BUSY_S, "check_same_thread": False}
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        # Turn off the driver's implicit transactions; `begin` below starts them.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        for pragma in PRAGMAS:
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Take the write lock at once: SQLite cannot wait when a read upgrades to a write.
        write = connection.get_execution_options().get("write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _postgres(url: URL) -> Engine:
    try:
        return create_engine(url, pool_pre_ping=True, hide_parameters=True)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise InputError(
            f"serve.saved.url: the driver of {url.drivername} is not installed ({error}); "
            "`pip install psycopg[binary]` and write postgresql+psycopg://"
        ) from error


def _make_tables(connection: Connection) -> None:
    METADATA.create_all(connection)
    found = connection.scalar(select(FACTS.c.value).where(FACTS.c.name == "schema"))
    if found is None:
        connection.execute(insert(FACTS).values(name="schema", value=SCHEMA))
    elif found != SCHEMA:
        raise SavedError(
            f"the database of serve.saved.url has form {found}, but this CiteRay reads {SCHEMA}; "
            "use the CiteRay version that created it, or another database",
            503,
            60,
        )
