"""Works on the jobs of a store, one after the other, a few of a job's questions at once.

A job that a killed process left goes on where it stopped: an answered question is not asked
again, as its entry is on disk before the next begins (`RunWriter`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

from cluster.errors import CiteRayError, InputError
from cluster.records import Answer, Question, SearchResult
from serve.batches.job_store import Job, JobStore, Progress
from serve.formats.bioasq import Entry, RunWriter, to_entry
from serve.watch_stages import StageLostError

log = logging.getLogger("citeray")

# Of a job and its entries, whatever version of the index each was answered from.
ANY_VERSION = "as served"
POLL_S = 1.0
LONGEST_WAIT_S = 30.0
TRIES = 8

Ask = Callable[[Question, str, bool], Awaitable[Answer | SearchResult]]


class JobRunner:
    """`ask(question, system, answers)` gives an Answer, or a SearchResult without `answers`."""

    def __init__(self, store: JobStore, ask: Ask, concurrent: int, first_wait_s: float = 0.5):
        self._store = store
        self._ask = ask
        self._concurrent = concurrent
        self._first_wait_s = first_wait_s
        self._new = asyncio.Event()

    def wake(self) -> None:
        """There is a new job."""
        self._new.set()

    async def run_forever(self) -> None:
        while True:
            try:
                await self.run_waiting()
            except (OSError, CiteRayError):
                log.exception("batches: the store cannot be used; trying again")
            self._new.clear()
            try:
                await asyncio.wait_for(self._new.wait(), POLL_S)
            except TimeoutError:
                continue

    async def run_waiting(self) -> None:
        """Work on all jobs that have not ended, in the order in which they came."""
        for job_id in self._store.ids():
            if self._store.progress(job_id).state in ("waiting", "running"):
                await _OneJob(self._store, self._store.job(job_id), self._answer).run(
                    self._concurrent
                )

    async def _answer(self, question: Question, job: Job) -> Answer | SearchResult:
        """Asked again while the graph is short of a stage, as batches can wait."""
        wait = self._first_wait_s
        for attempt in range(TRIES):
            try:
                return await self._ask(question, job.system, job.answers)
            except StageLostError:
                if attempt + 1 == TRIES:
                    raise
                await asyncio.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT_S)
        raise AssertionError("unreachable")


class _OneJob:
    def __init__(
        self,
        store: JobStore,
        job: Job,
        answer: Callable[[Question, Job], Awaitable[Answer | SearchResult]],
    ) -> None:
        self._store = store
        self._job = job
        self._answer = answer
        self._failed: dict[str, str] = {}
        self._losses: Counter[str] = Counter(store.progress(job.id).degraded)
        self._begun = time.monotonic()

    async def run(self, concurrent: int) -> None:
        job = self._job
        path = self._store.run_file(job.id)
        with RunWriter(path, job.system, ANY_VERSION, answers=job.answers) as run:
            before = len(run.done)
            waiting = [question for question in job.questions if question.id not in run.done]
            self._tell(run, before)

            async def work() -> None:
                while waiting and not self._cancelled():
                    await self._ask_one(waiting.pop(0), run)
                    self._tell(run, before)

            await asyncio.gather(*(work() for _ in range(concurrent)))
            if self._cancelled():
                return
            answered = [question for question in job.questions if question.id in run.done]
            if not answered:
                self._end(run, "failed", "no question could be answered; `failed` says why")
                return
            run.finish(answered)
            self._end(run, "done")

    async def _ask_one(self, question: Question, run: RunWriter) -> None:
        try:
            result = await self._answer(question, self._job)
            entry: Entry = to_entry(result)
        except (CiteRayError, InputError) as error:
            self._failed[question.id] = str(error)
            return
        except Exception:
            log.exception("batch %s: question %s failed", self._job.id, question.id)
            self._failed[question.id] = "internal error; the server's log tells more"
            return
        # Cancelled while it was asked: nothing is kept any more.
        if not self._cancelled():
            self._losses.update(result.degraded)
            run.add(entry)

    def _cancelled(self) -> bool:
        return self._store.progress(self._job.id).state == "cancelled"

    def _progress(self, run: RunWriter) -> Progress:
        return Progress("running", len(run.done), dict(self._failed), dict(self._losses))

    def _tell(self, run: RunWriter, before: int) -> None:
        if self._cancelled():
            return
        now = len(run.done) - before + len(self._failed)
        left = len(self._job.questions) - len(run.done) - len(self._failed)
        eta = (time.monotonic() - self._begun) / now * left if now else None
        self._store.keep(self._job.id, replace(self._progress(run), eta_s=eta))

    def _end(self, run: RunWriter, state: str, error: str = "") -> None:
        progress = replace(self._progress(run), error=error, ended=time.time())
        self._store.keep(self._job.id, replace(progress, state=state))  # type: ignore[arg-type]
