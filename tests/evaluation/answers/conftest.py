from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.evaluation.scripted_judge import ScriptedJudge
from tests.serve.http_server import serving


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def url(judge: ScriptedJudge) -> Iterator[str]:
    with serving(judge.app()) as port:
        yield f"http://127.0.0.1:{port}/v1"
