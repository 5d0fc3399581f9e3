from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from serve.saved.keep import Saved
from tests.serve.saved.kept import saved_at
from tests.serve.saved.kept_api import client_of
from tests.serve.service import SmallService


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> SmallService:
    return SmallService(tmp_path_factory.mktemp("index"))


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    return saved_at(tmp_path)


@pytest.fixture
def http(service: SmallService, saved: Saved) -> TestClient:
    return client_of(service, saved)
