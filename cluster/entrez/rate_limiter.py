"""Rate limiter for NCBI, shared by all threads and tasks of this process.

Three requests a second without an API key, ten with one
(https://www.ncbi.nlm.nih.gov/books/NBK25497/, Usage Guidelines and Requirements).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

PER_SECOND, PER_SECOND_WITH_KEY = 3.0, 10.0
# Requests that start exactly a third of a second apart sometimes arrive closer together, so the
# number of starts allowed per second is spread over 1.2 s.
_SPREAD_S = 1.2


class RateLimiter:
    """Rate limiter that starts requests at least 1.2 / `per_second` seconds apart.

    Unused starts do not accumulate: there is no burst after a pause or a blocked event loop, so
    that no second has more than `per_second` starts.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._interval_s = _SPREAD_S / per_second
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next = float("-inf")

    async def wait(self) -> None:
        """Wait until a request may start, and reserve this start."""
        while (early_s := self._take()) > 0:
            await self._sleep(early_s)

    def hold(self, seconds: float) -> None:
        """Allow no start for `seconds`, after the server reported too many requests."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)

    def _take(self) -> float:
        """Reserve a start and return 0, or return the seconds until one is available."""
        with self._lock:
            now = self._clock()
            if now < self._next:
                return self._next - now
            self._next = now + self._interval_s
            return 0.0


_limiters: dict[tuple[str, float], RateLimiter] = {}
_limiters_lock = threading.Lock()


def limiter_of(url: str, per_second: float) -> RateLimiter:
    """Return this process's limiter for the server at `url`."""
    with _limiters_lock:
        return _limiters.setdefault((url, per_second), RateLimiter(per_second))
