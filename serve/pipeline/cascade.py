"""Cascade search: run a preset's steps, from cheap to expensive, while the time budget allows.

step ─► ranking confident? ─► time for the next? ─► step ─► …

A cascade is called a ladder in the settings, and a step a rung. All steps read the same index, so
stage replies are cached between them (`CachingBackend`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping

from cluster.answers import SearchResult, Spent
from cluster.settings.search_settings import AskedType, LadderSettings, RungSettings

# Weight of the newest duration in the exponential moving average.
NEWEST = 0.2
# The best citation's score is compared with the score at this rank.
COMPARED = 10


class Costs:
    """Expected durations of searches and writing in ms, learned from previous ones."""

    def __init__(self) -> None:
        self._ms: dict[str, float] = {}

    def learn(self, name: str, ms: float) -> None:
        """Add `ms` to the exponential moving average of `name`."""
        known = self._ms.get(name, ms)
        self._ms[name] = known + NEWEST * (ms - known)

    def expected(self, name: str, default: float) -> float:
        """Return the expected duration of `name`, or `default` if none was learned yet."""
        return self._ms.get(name, default)


class Budget:
    """Time budget of a question in ms (0: unlimited); `reserve_ms` is not spent on the search."""

    def __init__(self, budget_ms: int, reserve_ms: float = 0.0) -> None:
        self._begun = time.monotonic()
        self._budget_ms = budget_ms or math.inf
        self._reserve_ms = reserve_ms

    @property
    def search_ms(self) -> float:
        """Total milliseconds that the search may take."""
        return max(self._budget_ms - self._reserve_ms, 0.0)

    @property
    def left_to_search_ms(self) -> float:
        """Milliseconds left for the search; negative if exceeded."""
        return self.search_ms - self.spent_ms

    @property
    def spent_ms(self) -> float:
        """Milliseconds since the budget began."""
        return (time.monotonic() - self._begun) * 1000

    def spent(self, found: SearchResult) -> Spent:
        """Return the time spent so far, with the cascade steps recorded in `found`."""
        budget = found.question.budget_ms
        return Spent(budget, round(self.spent_ms, 1), found.spent.rungs if found.spent else ())

    @property
    def left_ms(self) -> float:
        """Total milliseconds left; negative if exceeded, infinite without a budget."""
        return self._budget_ms - self.spent_ms


def is_confident(found: SearchResult, shares: Mapping[AskedType, float]) -> bool:
    """Return True if the score at rank COMPARED is below the best by the type's share or more."""
    kind = found.question.type
    scores = [citation.score for citation in found.citations[:COMPARED]]
    if kind == "unknown" or len(scores) < COMPARED or scores[0] <= 0:
        return False
    return (scores[0] - scores[-1]) / scores[0] >= shares[kind]


async def run_cascade(
    ladder: LadderSettings,
    budget: Budget,
    costs: Costs,
    search: Callable[[RungSettings], Awaitable[SearchResult]],
) -> tuple[SearchResult, tuple[str, ...]]:
    """Return (result of the last step, names of the steps run).

    At least one step runs, whatever the budget. Exceptions of `search` are raised.
    """

    def fits(rung: RungSettings) -> bool:
        return costs.expected(rung.name, rung.expects_ms) <= budget.left_to_search_ms

    rungs = list(ladder.rungs)
    begin = next(n for n, rung in enumerate(rungs) if rung.name == ladder.begin)
    at = next((n for n in range(begin, 0, -1) if fits(rungs[n])), 0)
    names = []
    while True:
        begun = time.monotonic()
        found = await search(rungs[at])
        costs.learn(rungs[at].name, (time.monotonic() - begun) * 1000)
        names.append(rungs[at].name)
        last = at + 1 == len(rungs)
        if last or is_confident(found, ladder.sure) or not fits(rungs[at + 1]):
            return found, tuple(names)
        at += 1
