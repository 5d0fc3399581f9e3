from __future__ import annotations

from typing import Any

import pytest

from tests.evaluation.report.some_report import REPORT, page


@pytest.fixture(scope="module")
def whole() -> Any:
    return page(REPORT)
