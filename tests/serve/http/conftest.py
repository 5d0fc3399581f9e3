from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.serve.api import client_of, served_api
from tests.serve.service import SmallService


@pytest.fixture(scope="module")
def http(service: SmallService) -> TestClient:
    """API over the module's `service`, in process."""
    return client_of(service)


@pytest.fixture(scope="module")
def url(service: SmallService) -> Iterator[str]:
    """URL of the API over the module's `service`."""
    with served_api(service) as url:
        yield url
