"""Works on the jobs of a store: of each owner one at a time, in the order in which they came.

A job that a killed process left goes on where it stopped.
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
from serve.graph.watch_stages import StageLostError

log = logging.getLogger("citeray")

POLL_S = 1.0
LONGEST_WAIT_S = 30.0
# How long a question waits for a graph that is short of a stage, before it has failed.
PATIENCE_S = 1800.0
# What keeps a job from being kept, and may be over in a moment.
PASSING = (OSError, MemoryError, CiteRayError)

Ask = Callable[[Question, str, bool], Awaitable[SearchResult]]


class JobRunner:
    """`ask(question, system, answers)` gives an Answer, or a SearchResult without `answers`.

    `concurrent` questions are asked at once. Owners share these alike, so that nobody's batch waits
    for the whole of another's.
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
        # First come, first served: the questions of all jobs at work come in turn.
        self._free = asyncio.Semaphore(concurrent)
        self._first_wait_s = first_wait_s
        self._patience_s = patience_s

    async def run_forever(self) -> None:
        """What cannot be kept, as on a full disk, is tried again; it ends no job."""
        while True:
            try:
                await self.run_waiting()
                await asyncio.to_thread(self._store.remove_expired)
            except PASSING:
                log.exception("batches: they cannot be kept; trying again")
            await asyncio.sleep(POLL_S)

    async def run_waiting(self) -> None:
        """Work on all jobs that have not ended."""
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
            # Tried again, it would keep all others from their turn.
            log.exception("batch %s failed", job.id)
            broken = replace(self._store.progress(job.key), error=INTERNAL, ended=time.time())
            self._store.advance(job.key, replace(broken, state="failed", eta_s=None))

    async def _answer(self, question: Question, job: Job) -> SearchResult:
        """Asked again while the graph is short of a stage, as batches can wait."""
        wait = self._first_wait_s
        ends = time.monotonic() + self._patience_s
        while True:
            try:
                async with self._free:
                    return await self._ask(question, job.system, job.answers)
            except StageLostError as error:
                if time.monotonic() + wait > ends or not self._store.goes_on(job.key):
                    raise
                log.warning("batch %s waits %.1f s: %s", job.id, wait, error)
                await asyncio.sleep(wait)
                if not self._store.goes_on(job.key):
                    raise
                wait = min(2 * wait, LONGEST_WAIT_S)
