"""As much search as a question needs and its budget allows: the ladder of a preset.

rung ─► sure of its order? ─► time for the next? ─► rung ─► …

Rungs are of one preset and read the same index, so that what one has found the next need not
look for again (`serve/graph/remember_stages.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping

from cluster.answers import SearchResult, Spent
from cluster.settings.search_settings import AskedType, LadderSettings, RungSettings

# How much the last search counts in what one is expected to take.
NEWEST = 0.2
# The best citation is compared with the last that a run file names.
COMPARED = 10


class Costs:
    """What a search, or writing, is expected to take here, in ms: learned from those before."""

    def __init__(self) -> None:
        self._ms: dict[str, float] = {}

    def learn(self, name: str, ms: float) -> None:
        """Take `ms` into the moving average of `name`: the newest counts a fifth."""
        known = self._ms.get(name, ms)
        self._ms[name] = known + NEWEST * (ms - known)

    def expected(self, name: str, untold: float) -> float:
        """Of `name`; `untold` where nothing was learned yet."""
        return self._ms.get(name, untold)


class Budget:
    """A question's time, in ms; 0 has no end. Of it `reserve_ms` is kept from the search."""

    def __init__(self, budget_ms: int, reserve_ms: float = 0.0) -> None:
        self._begun = time.monotonic()
        self._budget_ms = budget_ms or math.inf
        self._reserve_ms = reserve_ms

    @property
    def search_ms(self) -> float:
        """What the search may take in all."""
        return max(self._budget_ms - self._reserve_ms, 0.0)

    @property
    def left_to_search_ms(self) -> float:
        """Milliseconds left for the search; below 0 when it is overdrawn."""
        return self.search_ms - self.spent_ms

    @property
    def spent_ms(self) -> float:
        """Milliseconds since the budget began."""
        return (time.monotonic() - self._begun) * 1000

    def spent(self, found: SearchResult) -> Spent:
        """What the reply has taken until now, with the rungs that `found` names."""
        budget = found.question.budget_ms
        return Spent(budget, round(self.spent_ms, 1), found.spent.rungs if found.spent else ())

    @property
    def left_ms(self) -> float:
        """Milliseconds left in all; below 0 when it is overdrawn, infinite without a budget."""
        return self._budget_ms - self.spent_ms


def sure(found: SearchResult, shares: Mapping[AskedType, float]) -> bool:
    """Whether the order of the citations is clear; see LadderSettings."""
    kind = found.question.type
    scores = [citation.score for citation in found.citations[:COMPARED]]
    if kind == "unknown" or len(scores) < COMPARED or scores[0] <= 0:
        return False
    return (scores[0] - scores[-1]) / scores[0] >= shares[kind]


async def climb(
    ladder: LadderSettings,
    budget: Budget,
    costs: Costs,
    search: Callable[[RungSettings], Awaitable[SearchResult]],
) -> tuple[SearchResult, tuple[str, ...]]:
    """(what the last rung found, the rungs searched).

    The lowest rung is searched whatever the budget; raises what `search` raises.
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
        if last or sure(found, ladder.sure) or not fits(rungs[at + 1]):
            return found, tuple(names)
        at += 1
