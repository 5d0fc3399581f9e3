"""Admission control: concurrency limit, bounded queue and draining."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from cluster.errors import RefusedError
from cluster.settings.limits import questions_at_once
from cluster.settings.settings import Settings

LONGEST_RETRY_S = 60
# Weight of the newest request in the moving average of request durations.
NEWEST = 0.2


class Admission:
    """Run up to `at_once` requests; queue up to `waiting` more for at most `wait_s` seconds."""

    def __init__(self, at_once: int, waiting: int, wait_s: float) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._at_once = at_once
        self._most_waiting = waiting
        self._wait_s = wait_s
        self._mean_s = 1.0
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = False
        self.running = 0
        self.waiting = 0

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Create it with the limits of a gateway."""
        http = settings.serve.http
        return cls(questions_at_once(settings), http.waiting, http.wait_s)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a slot for the block; if none is free, raise RefusedError (429; 503 if draining)."""
        await self._take()
        begun = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            took = asyncio.get_running_loop().time() - begun
            self._mean_s += NEWEST * (took - self._mean_s)
            self.running -= 1
            if not self.running:
                self._idle.set()
            self._turns.release()

    async def _take(self) -> None:
        if self.draining:
            raise RefusedError("this server is stopping; retry in a moment", 503, 5)
        if self._turns.locked() and self.waiting >= self._most_waiting:
            raise self._overloaded()
        self.waiting += 1
        try:
            async with asyncio.timeout(self._wait_s):
                await self._turns.acquire()
        except TimeoutError:
            raise self._overloaded() from None
        finally:
            self.waiting -= 1
        self.running += 1
        self._idle.clear()

    def _overloaded(self) -> RefusedError:
        seconds = self._mean_s * (self.waiting + 1) / self._at_once
        retry = min(max(math.ceil(seconds), 1), LONGEST_RETRY_S)
        return RefusedError(
            f"{self.running} requests are running and {self.waiting} are waiting, which is the "
            f"limit of this server; retry in {retry} s",
            429,
            retry,
        )

    async def drain(self, deadline_s: float) -> bool:
        """Refuse new requests and wait for the admitted ones; return whether all ended in time."""
        self.draining = True
        try:
            async with asyncio.timeout(deadline_s):
                while self.running or self.waiting:
                    await self._idle.wait()
                    await asyncio.sleep(0)
        except TimeoutError:
            return False
        return True
