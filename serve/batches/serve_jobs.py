"""Serve the batch jobs of a graph: open their store and run them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cluster.answers import Question
from cluster.errors import StorageError
from cluster.settings.stages.serving import BatchSettings
from serve.batches.job_store import JobStore
from serve.batches.jobs import BatchError, Job, described, key_of, summarised
from serve.batches.run_jobs import POLL_S, Ask, JobRunner
from serve.formats.bioasq import Entry

log = logging.getLogger("citeray")

NOT_YET = ("the batches are being loaded; try again in a moment", 503, 5)
BROKEN = ("the batches cannot be read; see the server's log", 503, 60)


async def at_once() -> None:
    """No-op `ready` for callers whose `ask` is always ready."""


class ServedBatches:
    """Batch jobs in one process of a graph; only the API key `owner` sees a job.

    Jobs are accepted from the start and run once `ready` returns. Every method may raise
    BatchError, with status 503 until the folder is open.
    """

    def __init__(
        self,
        settings: BatchSettings,
        ask: Ask,
        ready: Callable[[], Awaitable[None]] = at_once,
    ) -> None:
        self._settings = settings
        self._ask = ask
        self._ready = ready
        self._opened: JobStore | None = None
        self._problem: tuple[str, int, int] = NOT_YET
        self._running: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start running jobs on the current event loop, beginning with unfinished ones."""
        if self._running is None:
            self._running = asyncio.create_task(self._work())

    async def end(self) -> None:
        """Stop running jobs and release the folder."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        if self._opened is not None:
            self._opened.close()

    async def _work(self) -> None:
        store = self._opened = await self._open()
        await self._ready()
        await JobRunner(store, self._ask, self._settings.concurrent).run_forever()

    async def _open(self) -> JobStore:
        """Open the store, with retries: the previous process may still be shutting down."""
        kept = self._settings
        while True:
            try:
                limits = (kept.waiting, kept.keep_days, kept.waiting_per_key)
                return await asyncio.to_thread(JobStore, kept.folder, *limits)
            except BatchError as error:
                self._problem = (error.message, error.status, error.retry_after_s)
            except StorageError as error:
                self._problem = (str(error), 503, 60)
            except Exception:
                log.exception("batches: %s cannot be read; trying again", kept.folder)
                self._problem = BROKEN
            await asyncio.sleep(POLL_S)

    @property
    def _store(self) -> JobStore:
        if self._opened is None:
            raise BatchError(*self._problem)
        return self._opened

    async def add(self, job: Job, questions: Sequence[Question]) -> dict[str, Any]:
        """Queue a job and return its status; BatchError 507 if the folder is not writable."""
        try:
            kept = await asyncio.to_thread(self._store.add, job, questions)
        except StorageError as error:
            raise BatchError(str(error), 507) from error
        return await self.status(kept.id, kept.owner)

    async def list(self, owner: str) -> list[dict[str, Any]]:
        """Return the status of each of the owner's jobs, oldest first."""
        jobs = self._store.all()
        return [summarised(job, progress) for job, progress in jobs if job.owner == owner]

    async def status(self, job_id: str, owner: str) -> dict[str, Any]:
        """Return the status of a job, with its first failed questions."""
        key = key_of(job_id, owner)
        return described(self._store.job(key), self._store.progress(key))

    async def cancel(self, job_id: str, owner: str) -> dict[str, Any]:
        """Cancel a job and return its status; delete a finished job and its run."""
        key = key_of(job_id, owner)
        job = self._store.job(key)
        return described(job, await asyncio.to_thread(self._store.cancel_or_forget, key))

    async def run(self, job_id: str, owner: str) -> bytes:
        """Return the run file of a finished job."""
        return await asyncio.to_thread(self._store.run, key_of(job_id, owner))

    async def results(self, job_id: str, owner: str, after: int, count: int) -> Sequence[Entry]:
        """Return up to `count` of the entries written so far, skipping the first `after`."""
        return await asyncio.to_thread(self._store.results, key_of(job_id, owner), after, count)
