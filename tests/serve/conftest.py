from __future__ import annotations

from collections.abc import Iterator
from functools import partialmethod
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

if TYPE_CHECKING:
    from tests.serve.service import SmallService


@pytest.fixture(scope="session", autouse=True)
def asked_by_a_name_of_this_machine() -> Iterator[None]:
    """Starlette's client asks a server called `testserver`, which the API is not."""
    with pytest.MonkeyPatch.context() as patch:
        named = partialmethod(TestClient.__init__, base_url="http://localhost")
        patch.setattr(TestClient, "__init__", named)
        yield


@pytest.fixture(scope="module")
def service() -> SmallService:
    from tests.serve.service import SmallService

    return SmallService()
