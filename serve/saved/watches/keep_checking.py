"""Background tasks of the gateway: check saved questions, deliver messages, expire answers.

Leases ensure that only one replica at a time checks questions or delivers messages.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from cluster.answers import Answer
from cluster.exposure import Exposure
from cluster.records import Citation
from serve.saved.stores import Saved
from serve.saved.watches.check_watches import Ask, Budget, check_watches
from serve.saved.watches.lease import LEASE_S, DatabaseLease
from serve.saved.watches.webhooks import deliver_due, send

log = logging.getLogger("citeray")

POLL_S = 5.0
EXPIRE_EVERY_S = 3600.0
# Longest wait in seconds of a saved question for a moment without user requests.
LONGEST_WAIT_S = 20.0
QUIET_POLL_S = 0.1
# Pause after each saved question, as a multiple of its duration: saved questions take at most a
# tenth of the time, so that they hardly change the 95th percentile latency of users' requests. The
# lease is renewed between two questions and must be longer than the longest pause.
REST = 9.0
LONGEST_REST_S = 30.0
ServedVersion = Callable[[], Awaitable[str]]


class PoliteAsk:
    """Wrapper of `ask` that waits until no user request is running, at most `longest_s` seconds.

    It pauses between two questions, in proportion to the duration of the last one.
    """

    def __init__(
        self, ask: Ask, busy: Callable[[], bool], longest_s: float = LONGEST_WAIT_S
    ) -> None:
        self._ask = ask
        self._busy = busy
        self._longest_s = longest_s
        self._rests_until = 0.0

    async def answer(self, request: Mapping[str, Any]) -> Answer:
        """Answer a request after the pause, once no user request is running."""
        await asyncio.sleep(max(self._rests_until - time.monotonic(), 0.0))
        ends = time.monotonic() + self._longest_s
        while self._busy() and time.monotonic() < ends:
            await asyncio.sleep(QUIET_POLL_S)
        begun = time.monotonic()
        try:
            return await self._ask.answer(request)
        finally:
            ended = time.monotonic()
            self._rests_until = ended + min(REST * (ended - begun), LONGEST_REST_S)

    async def citation(self, pmid: int) -> Citation | None:
        """Return the complete record, or None if the index does not have it."""
        return await self._ask.citation(pmid)

    async def exposure(self, pmids: Sequence[int]) -> Exposure | None:
        """Return the exposure of articles to retractions; None if a shard does not answer."""
        return await self._ask.exposure(pmids)


class WatchKeeper:
    """Background tasks over `saved` in each replica of the gateway.

    `served` returns the index version in use, "" while it is unknown. A question may take
    `deadline_s` seconds. If a replica dies, another takes over once its lease has expired.
    """

    def __init__(self, saved: Saved, ask: Ask, served: ServedVersion, deadline_s: float) -> None:
        self._saved = saved
        self._ask = ask
        self._served = served
        self._budget = Budget(saved.settings.checks_per_minute)
        lease_s = max(LEASE_S, 2 * deadline_s)
        self._checking = DatabaseLease(saved.database, "watches", lease_s)
        self._delivering = DatabaseLease(saved.database, "webhooks", lease_s)
        self._expired = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._told: dict[str, str] = {}

    def begin(self) -> None:
        """Start the tasks on the running event loop."""
        works = {"saved questions": self.check, "webhooks": self.deliver, "expiry": self.expire}
        self._tasks = [asyncio.create_task(self._repeat(*work)) for work in works.items()]

    async def end(self) -> None:
        """Cancel the tasks; the next process repeats unfinished work."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
                self._told.pop(name, None)
            except Exception as error:
                if self._told.get(name) != str(error):
                    log.warning("%s: %s; trying again", name, error, exc_info=True)
                self._told[name] = str(error)
            await asyncio.sleep(POLL_S)

    async def check(self) -> None:
        """Ask the due saved questions if this replica can acquire the lease."""
        version = await self._served()
        store = self._saved.watches
        if not version or await asyncio.to_thread(store.next_due, version) is None:
            return

        async def acquire() -> bool:
            return await asyncio.to_thread(self._checking.acquire)

        if await acquire():
            await check_watches(store, self._ask, version, self._budget, acquire)
            await asyncio.to_thread(self._checking.release)

    async def deliver(self) -> None:
        """Send the due messages if this replica can acquire the lease."""
        store = self._saved.deliveries
        if not await asyncio.to_thread(store.due, 1):
            return
        if await asyncio.to_thread(self._delivering.acquire):
            post = partial(send, settings=self._saved.settings)
            await asyncio.to_thread(deliver_due, store, post, self._delivering.acquire)
            await asyncio.to_thread(self._delivering.release)

    async def expire(self) -> None:
        """Delete expired answers, at most once every `EXPIRE_EVERY_S` seconds."""
        if time.monotonic() - self._expired > EXPIRE_EVERY_S or not self._expired:
            await asyncio.to_thread(self._saved.answers.remove_expired)
            self._expired = time.monotonic()
