"""Questions, job stores, and an HTTP server with batches over the small service."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from cluster.answers import Answer, Question, SearchResult
from cluster.settings.presets import load_system
from cluster.settings.stages.serving import BatchSettings
from serve.batches.job_store import JobStore
from serve.batches.jobs import Job, new_job
from serve.batches.run_jobs import JobRunner
from serve.batches.serve_jobs import ServedBatches
from serve.contracts.request import Request
from tests.serve.api import served_api
from tests.serve.service import SmallService


class Asking:
    """Asks the small service once `go_on` is set and `trouble` has returned; records the ids.

    `change` replaces each result.
    """

    def __init__(self, service: SmallService) -> None:
        self._service = service
        self.asked: list[str] = []
        self.trouble: Callable[[Question], None] = lambda question: None
        self.change: Callable[[SearchResult], SearchResult] = lambda result: result
        self.go_on: asyncio.Event | None = None

    async def ask(self, question: Question, job: Job) -> Answer | SearchResult:
        self.asked.append(question.id)
        if self.go_on is not None:
            await self.go_on.wait()
        await asyncio.to_thread(self.trouble, question)
        system = load_system(job.system)
        asked = Request(question, system, snippets=True, filters=job.filters)
        ask = self._service.answer if job.answers else self._service.search
        return self.change(await ask(asked))


def settings_at(folder: Path) -> BatchSettings:
    return BatchSettings(folder=folder / "batches", concurrent=2, waiting=5, keep_days=1)


@contextmanager
def served(service: SmallService, folder: Path, asking: Asking) -> Iterator[httpx.Client]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    batches = ServedBatches(settings_at(folder), asking.ask)
    loop.call_soon_threadsafe(batches.begin)
    try:
        with (
            served_api(service, batches=batches) as url,
            httpx.Client(base_url=url, timeout=30) as http,
        ):
            while http.get("/v1/batches").status_code == 503:
                pass
            yield http
    finally:
        asyncio.run_coroutine_threadsafe(batches.end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


QUESTIONS = [
    Question("q1", "Does metformin activate AMPK?", "yesno"),
    Question("q2", "What does warfarin inhibit?", "factoid"),
    Question("q3", "What does imatinib inhibit?", "factoid"),
]
ROWS = [{"id": q.id, "type": q.type, "body": q.body} for q in QUESTIONS]


@contextmanager
def store_at(folder: Path, waiting: int = 10, keep_days: float = 30) -> Iterator[JobStore]:
    """Open a store, and release its folder at the end of the block."""
    store = JobStore(folder / "batches", waiting, keep_days)
    try:
        yield store
    finally:
        store.close()


def add(
    store: JobStore,
    job_id: str = "mine",
    questions: list[Question] = QUESTIONS,
    *,
    answers: bool = False,
    owner: str = "",
) -> Job:
    return store.add(new_job(questions, "citeray", answers, job_id, owner), questions)


def ids(store: JobStore) -> list[str]:
    return [job.id for job, _ in store.all()]


def work(store: JobStore, asking: Asking, concurrent: int = 2, patience_s: float = 5) -> None:
    """Run all waiting jobs."""
    runner = JobRunner(store, asking.ask, concurrent, first_wait_s=0.01, patience_s=patience_s)
    asyncio.run(runner.run_waiting())


def entries_of(store: JobStore, job_id: str = "mine") -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(store.run(job_id))["questions"]
    return entries
