from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from serve.saved.stores import Saved
from tests.serve.api import client_of
from tests.serve.saved.kept import KEYS_ENV, URL_FILE, saved_at
from tests.serve.saved.postgres_server import PostgresServer, postgres_server
from tests.serve.service import SmallService


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.nightly)])
def each_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Run the test with SQLite, and nightly with Postgres."""
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        (tmp_path / URL_FILE).write_text(server.new_schema())
    kind: str = request.param
    return kind


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    return saved_at(tmp_path)


@pytest.fixture
def http(service: SmallService, saved: Saved) -> TestClient:
    return client_of(service, saved=saved)


@pytest.fixture
def keyed(service: SmallService, saved: Saved, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """API that requires one of the keys `KEYS`."""
    monkeypatch.setenv("CITERAY_API_KEYS", KEYS_ENV)
    return client_of(service, saved=saved)
