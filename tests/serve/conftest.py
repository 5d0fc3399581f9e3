from __future__ import annotations

from collections.abc import Iterator
from functools import partialmethod
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

if TYPE_CHECKING:
    from tests.serve.service import SmallService


@pytest.fixture(scope="session", autouse=True)
def client_uses_localhost() -> Iterator[None]:
    """Let Starlette's client use `localhost`, because the API rejects its default `testserver`."""
    with pytest.MonkeyPatch.context() as patch:
        named = partialmethod(TestClient.__init__, base_url="http://localhost")
        patch.setattr(TestClient, "__init__", named)
        yield


@pytest.fixture(scope="module")
def service() -> SmallService:
    from tests.serve.service import SmallService

    return SmallService()
