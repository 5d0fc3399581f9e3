"""The engine of every batch: several questions at once, and what their answers had to do without.

`citeray answer` and `/v1/batches` both run on it. What becomes of a question that fails is theirs.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence

from cluster.answers import Question


async def work_through(
    questions: Sequence[Question],
    work: Callable[[Question], Awaitable[None]],
    concurrent: int,
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Await `work` of each question, at most `concurrent` at once, in their order.

    No question is begun once `goes_on` is false. What one of them raises cancels the others
    before it is raised here.
    """
    waiting = deque(questions)

    async def worker() -> None:
        while waiting and goes_on():
            await work(waiting.popleft())

    tasks = [asyncio.ensure_future(worker()) for _ in range(concurrent)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Tally:
    """What a batch's answers had to do without, their verdicts, and the index they are from.

    `version` is that of the first answer; an answer from another one counts as a loss.
    """

    def __init__(
        self,
        version: str = "",
        losses: Mapping[str, int] | None = None,
        verdicts: Mapping[str, int] | None = None,
    ) -> None:
        self.version = version
        self.losses = Counter(losses or {})
        self.verdicts = Counter(verdicts or {})

    def count(self, degraded: Sequence[str], version: str, verdict: str = "") -> None:
        """One more answer; `verdict` is "" where documents alone were asked for."""
        self.losses.update(degraded)
        if verdict:
            self.verdicts[verdict] += 1
        self.version = self.version or version
        if version != self.version:
            self.losses[f"index: moved on from {self.version} to {version}"] += 1

    def counts(self) -> dict[str, dict[str, int]]:
        """Both counts, the most frequent first."""
        return {
            "degraded": dict(self.losses.most_common()),
            "verdicts": dict(self.verdicts.most_common()),
        }


class Eta:
    """How many of `total` are done, and the seconds until all are, at the pace since now."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self._begun = time.monotonic()

    def after_one(self) -> float:
        """One more is done."""
        self.done += 1
        left = self.total - self.done
        return round((time.monotonic() - self._begun) / self.done * left, 1)
