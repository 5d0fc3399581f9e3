"""Rate limiting of requests, with a fake clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from cluster.entrez.rate_limiter import RateLimiter, limiter_of


class Clock:
    """Fake clock; sleeping advances it by the requested time plus `late_s`."""

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
    """A limiter that records the time of each start."""

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


@pytest.mark.parametrize(
    ("per_second", "idle_s", "late_s"), [(3, 0, 0), (10, 0, 0), (3, 60, 0), (3, 0, 2)]
)
def test_starts_per_second_are_limited_even_after_idle_time(
    per_second: int, idle_s: float, late_s: float
) -> None:
    clock = Clock(late_s)
    starts = Starts(per_second, clock)
    asyncio.run(starts.start())
    clock.now += idle_s
    asyncio.run(starts.start_many(40))
    assert len(starts.times) == 41
    assert most_in_a_second(starts.times) <= per_second


def test_threads_share_the_rate_limit() -> None:
    starts = Starts(3, Clock())
    threads = [
        threading.Thread(target=lambda: asyncio.run(starts.start_many(10))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A thread records its time after the start, when another may have advanced the clock.
    assert starts.clock.now >= 100 + 39 / 3
    assert len(starts.times) == 40


def test_hold_delays_all_starts_and_is_not_shortened() -> None:
    starts = Starts(3, Clock())
    starts.limiter.hold(7)
    starts.limiter.hold(1)
    asyncio.run(starts.start())
    assert starts.times == [107.0]


def test_limiter_is_shared_per_server() -> None:
    assert limiter_of("http://a", 3) is limiter_of("http://a", 3)
    assert limiter_of("http://a", 3) is not limiter_of("http://b", 3)
