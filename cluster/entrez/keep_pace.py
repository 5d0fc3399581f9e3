"""The pace that NCBI allows, kept by all threads and tasks of this process together.

Three requests a second without an API key, ten with one
(https://www.ncbi.nlm.nih.gov/books/NBK25497/, Usage Guidelines and Requirements).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

PER_SECOND, PER_SECOND_WITH_KEY = 3.0, 10.0
# What starts exactly a third of a second apart arrives closer than that now and then: so many
# starts are spread over 1.2 s as are allowed in one.
_SPREAD_S = 1.2


class RateLimiter:
    """Lets requests start at least 1.2 / `per_second` seconds apart.

    There is no saving up: after a pause, or where the event loop stood still, the next
    start is as far from the one before as ever, so no second holds more than `per_second`.
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
        """Return when a request may start; whoever returns has taken that start."""
        while (early_s := self._take()) > 0:
            await self._sleep(early_s)

    def hold(self, seconds: float) -> None:
        """Let nobody start for `seconds`: the server has said that there were too many."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)

    def _take(self) -> float:
        """0 where a start was taken, else the seconds until there may be one."""
        with self._lock:
            now = self._clock()
            if now < self._next:
                return self._next - now
            self._next = now + self._interval_s
            return 0.0


_limiters: dict[tuple[str, float], RateLimiter] = {}
_limiters_lock = threading.Lock()


def limiter_of(url: str, per_second: float) -> RateLimiter:
    """The one limiter of this process for the server at `url`."""
    with _limiters_lock:
        return _limiters.setdefault((url, per_second), RateLimiter(per_second))
