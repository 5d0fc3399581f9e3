"""Temporary Postgres server on a Unix socket, from Debian's packages or PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

USER = "postgres"


class PostgresServer:
    """Database cluster and socket in `folder`. Runs as USER, as Postgres refuses to run as root."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self.folder = folder
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            shutil.chown(folder, USER, USER)
            self._as = {"user": USER, "group": USER, "extra_groups": []}
        self._run("initdb", "-D", folder / "data", "-A", "trust", "-U", USER, "--no-sync")

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        with (self.folder / "log").open("ab") as log:
            done = subprocess.run(
                command, cwd=self.folder, stdout=log, stderr=log, check=False, **self._as
            )
        assert done.returncode == 0, (self.folder / "log").read_text()

    def start(self) -> None:
        # -F: no fsync, as no test simulates a power failure.
        options = f"-F -k {self.folder} -c listen_addresses='' -c max_connections=400"
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "-o", options, "start")

    def stop(self) -> None:
        """Stop as in a crash, without finishing transactions."""
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "-m", "immediate", "stop")

    def execute(self, statement: str) -> None:
        where = f"host={self.folder} user={USER} dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def new_schema(self) -> str:
        """Return the URL of a new schema, which is created faster than a database."""
        name = f"t{uuid.uuid4().hex}"
        self.execute(f"CREATE SCHEMA {name}")
        where = f"{USER}@/postgres?host={self.folder}"
        return f"postgresql://{where}&options=-csearch_path%3D{name}"


def binaries() -> Path | None:
    """Return the folder of `initdb`: Debian's newest release, otherwise that on PATH."""
    debian = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    newest = sorted(debian, key=lambda path: float(path.parent.name))[-1:]
    found = shutil.which("initdb", path=os.pathsep.join([*map(str, newest), os.environ["PATH"]]))
    return Path(found).parent if found else None


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    place = binaries()
    if place is None:
        pytest.skip("no Postgres server here; `apt-get install postgresql` brings one")
    # The user postgres may not enter pytest's temporary folders.
    folder = Path(tempfile.mkdtemp(prefix="citeray-pg-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        server = PostgresServer(place, folder)
        server.start()
        stack.callback(server.stop)
        yield server
