"""The pace of requests, by a clock of the test's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from cluster.entrez.keep_pace import RateLimiter, limiter_of


class Clock:
    """Sleeping moves it on by what was asked and by `late_s` more; nothing really waits."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now = 100.0
        self.late_s = late_s
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        with self._lock:
            self.now += seconds + self.late_s
        await asyncio.sleep(0)


class Starts:
    """A limiter whose starts are noted, as the clock saw them."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self.limiter = RateLimiter(per_second, clock, clock.sleep)
        self.clock = clock
        self.times: list[float] = []

    async def start(self) -> None:
        await self.limiter.wait()
        self.times.append(self.clock())

    async def start_many(self, count: int) -> None:
        await asyncio.gather(*(self.start() for _ in range(count)))


def most_in_a_second(times: Sequence[float]) -> int:
    return max(sum(start <= each < start + 1 for each in times) for start in times)


@pytest.mark.parametrize("per_second", [3, 10])
def test_no_second_holds_more_starts_than_allowed(per_second: int) -> None:
    starts = Starts(per_second, Clock())
    asyncio.run(starts.start_many(40))
    assert len(starts.times) == 40
    assert most_in_a_second(starts.times) <= per_second


def test_starts_that_were_not_used_are_not_saved_up() -> None:
    clock = Clock()
    starts = Starts(3, clock)
    asyncio.run(starts.start())
    clock.now += 60
    asyncio.run(starts.start_many(10))
    assert most_in_a_second(starts.times) <= 3


def test_waking_late_brings_no_burst() -> None:
    starts = Starts(3, Clock(late_s=2.0))
    asyncio.run(starts.start_many(10))
    assert most_in_a_second(starts.times) <= 3


def test_threads_share_the_pace() -> None:
    starts = Starts(3, Clock())
    threads = [
        threading.Thread(target=lambda: asyncio.run(starts.start_many(10))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A thread notes its time after it started, when another may have moved the clock on.
    assert starts.clock.now >= 100 + 39 / 3
    assert len(starts.times) == 40


def test_a_hold_keeps_everyone_back_and_a_shorter_one_changes_nothing() -> None:
    starts = Starts(3, Clock())
    starts.limiter.hold(7)
    starts.limiter.hold(1)
    asyncio.run(starts.start())
    assert starts.times == [107.0]


def test_a_server_has_one_limiter_and_another_server_another() -> None:
    assert limiter_of("http://a", 3) is limiter_of("http://a", 3)
    assert limiter_of("http://a", 3) is not limiter_of("http://b", 3)
