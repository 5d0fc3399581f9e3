"""Recent answers that are not stored, so that storing one does not ask its question again."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from cluster.answers import Answer

MOST_RECENT = 200
RECENT_S = 15 * 60


class RecentAnswers:
    """The last MOST_RECENT answers that are not stored, for RECENT_S seconds, in memory.

    An answer is found by its owner and its request.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: OrderedDict[str, tuple[float, Answer]] = OrderedDict()

    def add(self, owner: str, request: Mapping[str, Any], answer: Answer) -> None:
        """Remember an answer; the oldest ones are forgotten."""
        key = _key(owner, request)
        self._answers.pop(key, None)
        self._answers[key] = (self._clock(), answer)
        if len(self._answers) > MOST_RECENT:
            self._answers.popitem(last=False)

    def take(self, owner: str, request: Mapping[str, Any]) -> Answer | None:
        """Forget the answer to an equal request of this owner and return it, or None."""
        since, answer = self._answers.pop(_key(owner, request), (0.0, None))
        return answer if answer and self._clock() - since <= RECENT_S else None


def _key(owner: str, request: Mapping[str, Any]) -> str:
    return json.dumps([owner, request], sort_keys=True)
