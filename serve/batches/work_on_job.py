"""Run one job, with several questions at once, until it ends or is cancelled.

An answered question is not asked again after a crash: `RunWriter` writes its entry to disk before
the next question starts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

from cluster.answers import Answer, Question, SearchResult
from cluster.errors import CiteRayError
from serve.batches.job_store import JobStore
from serve.batches.jobs import Job, Progress, State
from serve.batches.work_through import Eta, Tally, work_through
from serve.formats.bioasq import RunWriter, to_entry

log = logging.getLogger("citeray")

# Used as the index version of a run file, because the index may be updated during a job.
ANY_VERSION = "as served"
INTERNAL = "internal error; see the server's log"
MAX_REASON_CHARACTERS = 300
# Interval in seconds for checking whether a running job was cancelled.
LOOK_S = 0.2

Answering = Callable[[Question, Job], Awaitable[SearchResult]]


class JobAtWork:
    """Running job with its counts, which continue those of an earlier process."""

    def __init__(self, store: JobStore, job: Job, answer: Answering) -> None:
        known = store.progress(job.key)
        self._store = store
        self._job = job
        self._answer = answer
        self._failed = dict(known.failed)
        self._tally = Tally(known.index_version, known.degraded, known.verdicts)
        self._started = known.started or time.time()
        self._done = 0

    async def run(self, concurrent: int) -> None:
        """Run the job until it ends.

        Raises one of `run_jobs.PASSING` if results cannot be stored; the job can then be run again.
        """
        job = self._job
        path = self._store.run_file(job.key)
        if path.exists():
            # The previous process died after it finished the run and before it recorded the state.
            self._done = job.total - len(self._failed)
            self._advance("done")
            return
        writer = RunWriter(path, job.system, ANY_VERSION, answers=job.answers, inputs=job.digest)
        with writer as run:
            questions = self._store.questions(job.key)
            waiting = [q for q in questions if q.id not in run.done and q.id not in self._failed]
            self._done = len(run.done)
            self._count_again(run)
            eta = Eta(len(waiting))
            self._advance("running")

            async def work(question: Question) -> None:
                await self._ask(question, run)
                self._advance("running", eta_s=eta.after_one())

            all_of_it = work_through(
                waiting, work, concurrent, lambda: self._store.goes_on(job.key)
            )
            await self._until_ended(all_of_it)
            if self._store.goes_on(job.key):
                self._finish([q for q in questions if q.id in run.done], run)

    def _count_again(self, run: RunWriter) -> None:
        """Count the entries in the run file again, because the state on disk may be older."""
        self._tally = Tally()
        for note in filter(None, run.notes):
            self._tally.count(*note)

    async def _until_ended(self, work: Coroutine[Any, Any, None]) -> None:
        """Await `work`, and cancel it with its running questions if the job is cancelled."""
        working = asyncio.ensure_future(work)
        try:
            while not working.done() and self._store.goes_on(self._job.key):
                await asyncio.wait({working}, timeout=LOOK_S)
            if working.done():
                working.result()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _ask(self, question: Question, run: RunWriter) -> None:
        try:
            # A run file needs an answer even if the evidence is not sufficient.
            result = await self._answer(replace(question, guess=True), self._job)
            entry = to_entry(result)
            # The text of a model may contain characters that UTF-8 cannot encode.
            json.dumps(entry, ensure_ascii=False).encode()
        except CiteRayError as error:
            self._failed[question.id] = str(error)[:MAX_REASON_CHARACTERS]
            return
        except Exception:
            log.exception("batch %s: question %s failed", self._job.id, question.id)
            self._failed[question.id] = INTERNAL
            return
        # Discard the answer if the job was cancelled meanwhile.
        if self._store.goes_on(self._job.key):
            verdict = result.verdict if isinstance(result, Answer) else ""
            counted = (result.degraded, result.index_version, verdict)
            run.add(entry, counted)
            self._done += 1
            self._tally.count(*counted)

    def _finish(self, answered: list[Question], run: RunWriter) -> None:
        if not answered:
            self._advance("failed", error="no question could be answered; `failed` says why")
            return
        # The run file does not list failed questions, so store them first.
        self._advance("running", on_disk=True)
        run.finish(answered)
        self._advance("done")

    def _advance(
        self, state: State, *, error: str = "", eta_s: float | None = None, on_disk: bool = False
    ) -> None:
        progress = Progress(
            state=state,
            done=self._done,
            failed=dict(self._failed),
            index_version=self._tally.version,
            **self._tally.counts(),
            error=error,
            eta_s=eta_s,
            started=self._started,
            ended=0.0 if state == "running" else time.time(),
        )
        self._store.advance(self._job.key, progress, on_disk=on_disk)
