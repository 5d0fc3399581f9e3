from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.hostile.raw_http import ask, head
from tests.serve.batches.served import Asking, served
from tests.serve.service import SmallService


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Client of the API behind a real socket, including batches."""
    folder = tmp_path_factory.mktemp("hostile")
    service = SmallService()
    with served(service, folder, Asking(service)) as http:
        yield http


@pytest.fixture
def port(http: httpx.Client) -> Iterator[int]:
    """Return the port of the API; after each test, the API must still respond."""
    assert http.base_url.port is not None
    yield http.base_url.port
    assert ask(http.base_url.port, head(b"GET", b"/healthz")) == (200, b'{"status":"alive"}')
