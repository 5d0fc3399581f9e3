"""Run the questions of a batch concurrently, and count the losses and verdicts of the answers.

Used by `citeray answer` and `/v1/batches`, which handle failed questions differently.
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
    """Await `work` for each question in order, at most `concurrent` at once.

    Starts no further question once `goes_on` returns False. If one question raises an error, the
    others are cancelled before the error is raised.
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
    """Counts of verdicts, and of losses: what answers lack, such as the results of a shard.

    `version` is the index version of the first answer; an answer from another version counts as a
    loss.
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
        """Count one more answer; `verdict` is "" if only documents were requested."""
        self.losses.update(degraded)
        if verdict:
            self.verdicts[verdict] += 1
        self.version = self.version or version
        if version != self.version:
            self.losses[f"index: moved on from {self.version} to {version}"] += 1

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the losses as `degraded` and the verdicts, the most frequent first."""
        return {
            "degraded": dict(self.losses.most_common()),
            "verdicts": dict(self.verdicts.most_common()),
        }


class Eta:
    """Estimate of the remaining time for `total` questions, from the average pace so far."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self._begun = time.monotonic()

    def after_one(self) -> float:
        """Count one more finished question, and return the remaining seconds."""
        self.done += 1
        left = self.total - self.done
        return round((time.monotonic() - self._begun) / self.done * left, 1)
