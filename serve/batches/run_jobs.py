"""Run the jobs of a store, one job per owner at a time, in the order of their arrival.

A job that was interrupted by a crash is resumed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from cluster.answers import Question, SearchResult
from cluster.errors import CiteRayError
from serve.batches.job_store import JobStore
from serve.batches.jobs import Job
from serve.batches.work_on_job import INTERNAL, JobAtWork
from serve.contracts.stage_watch import StageLostError

log = logging.getLogger("citeray")

POLL_S = 1.0
LONGEST_WAIT_S = 30.0
# How long a question is retried while a stage of the graph is lost, before it fails.
PATIENCE_S = 1800.0
# Errors of storing a job that may be transient.
PASSING = (OSError, MemoryError, CiteRayError)

Ask = Callable[[Question, Job], Awaitable[SearchResult]]


class JobRunner:
    """Runner of the jobs in a store.

    `ask(question, job)` returns an Answer, or a SearchResult if the job's `answers` is False. At
    most `concurrent` questions run at once. Owners share them equally, so that no batch waits until
    another owner's batch has ended.
    """

    def __init__(
        self,
        store: JobStore,
        ask: Ask,
        concurrent: int,
        *,
        first_wait_s: float = 0.5,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._store = store
        self._ask = ask
        self._concurrent = concurrent
        # A semaphore is first come, first served, so that the questions of all jobs take turns.
        self._free = asyncio.Semaphore(concurrent)
        self._first_wait_s = first_wait_s
        self._patience_s = patience_s

    async def run_forever(self) -> None:
        """Run jobs until cancelled. Storage errors, such as a full disk, are retried."""
        while True:
            try:
                await self.run_waiting()
                await asyncio.to_thread(self._store.remove_expired)
            except PASSING:
                log.exception("batches: results cannot be stored; trying again")
            await asyncio.sleep(POLL_S)

    async def run_waiting(self) -> None:
        """Run all jobs that have not ended, and return when none is left."""
        at_work: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                while job := self._store.next(at_work):
                    at_work[job.owner] = asyncio.create_task(self._run(job))
                if not at_work:
                    return
                await asyncio.wait(
                    at_work.values(), timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED
                )
                for owner in [owner for owner, task in at_work.items() if task.done()]:
                    at_work.pop(owner).result()
        finally:
            for task in at_work.values():
                task.cancel()
            await asyncio.gather(*at_work.values(), return_exceptions=True)

    async def _run(self, job: Job) -> None:
        try:
            await JobAtWork(self._store, job, self._answer).run(self._concurrent)
        except PASSING:
            raise
        except Exception:
            # Do not retry: the job would fail again and block the others.
            log.exception("batch %s failed", job.id)
            broken = replace(self._store.progress(job.key), error=INTERNAL, ended=time.time())
            self._store.advance(job.key, replace(broken, state="failed", eta_s=None))

    async def _answer(self, question: Question, job: Job) -> SearchResult:
        """Ask a question; retry with exponential back-off while a stage of the graph is lost."""
        wait = self._first_wait_s
        ends = time.monotonic() + self._patience_s
        while True:
            try:
                async with self._free:
                    return await self._ask(question, job)
            except StageLostError as error:
                if time.monotonic() + wait > ends or not self._store.goes_on(job.key):
                    raise
                log.warning("batch %s: trying again in %.1f s: %s", job.id, wait, error)
                await asyncio.sleep(wait)
                if not self._store.goes_on(job.key):
                    raise
                wait = min(2 * wait, LONGEST_WAIT_S)
