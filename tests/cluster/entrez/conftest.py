"""A local E-utilities server with four records."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from tests.serve.eutils_server import EUtils, eutils


@pytest.fixture(scope="module")
def running() -> Iterator[EUtils]:
    with eutils(EUtils()) as running:
        yield running


@pytest.fixture
def server(running: EUtils) -> EUtils:
    running.start_over(dict.fromkeys((31, 7, 12, 5), date(2020, 1, 1)))
    return running
