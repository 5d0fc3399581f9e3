"""What the tests of batches ask, and where they keep it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.answers import Question
from serve.batches.job_store import JobStore
from serve.batches.jobs import Job, new_job
from serve.batches.run_jobs import JobRunner
from tests.serve.batches.served import Asking

QUESTIONS = [
    Question("q1", "Does metformin activate AMPK?", "yesno"),
    Question("q2", "What does warfarin inhibit?", "factoid"),
    Question("q3", "What does imatinib inhibit?", "factoid"),
]
ROWS = [{"id": q.id, "type": q.type, "body": q.body} for q in QUESTIONS]


@contextmanager
def store_at(folder: Path, waiting: int = 10, keep_days: float = 30) -> Iterator[JobStore]:
    """A store that another one can follow at the same place."""
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
    """Until no job is left to work on."""
    runner = JobRunner(
        store, asking.ask, concurrent, first_wait_s=0.01, patience_s=patience_s
    )  # fmt: skip
    asyncio.run(runner.run_waiting())


def entries_of(store: JobStore, job_id: str = "mine") -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(store.run(job_id))["questions"]
    return entries
