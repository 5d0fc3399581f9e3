from typing import Any, cast

import pytest

from cluster.answers import Answer
from serve.saved.recent_answers import MOST_RECENT, RECENT_S, RecentAnswers

pytestmark = pytest.mark.unit


def test_old_and_surplus_recent_answers_are_forgotten() -> None:
    now, answer = [0.0], cast("Answer", object())
    recent = RecentAnswers(lambda: now[0])

    def request(number: int) -> dict[str, Any]:
        return {"question": f"q{number}"}

    for number in range(MOST_RECENT + 1):
        recent.add("alice", request(number), answer)
    assert recent.take("alice", request(0)) is None
    assert recent.take("bob", request(1)) is None
    assert recent.take("alice", request(1)) is answer
    assert recent.take("alice", request(1)) is None
    now[0] = RECENT_S + 1
    assert recent.take("alice", request(2)) is None
