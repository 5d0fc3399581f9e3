"""Batches on disk, through the runner, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.records import Question
from serve.batches.job_store import BatchError, JobStore, Progress, new_job
from serve.batches.run_jobs import JobRunner
from serve.watch_stages import StageLostError
from tests.serve.batches.served import Asking, served
from tests.serve.service import SmallService

ROOT = Path(__file__).parents[3]
QUESTIONS = [
    Question("q1", "Does metformin activate AMPK?", "yesno"),
    Question("q2", "What does warfarin inhibit?", "factoid"),
    Question("q3", "What does imatinib inhibit?", "factoid"),
]
ROWS = [{"id": q.id, "type": q.type, "body": q.body} for q in QUESTIONS]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> SmallService:
    return SmallService(tmp_path_factory.mktemp("index"))


def store_at(folder: Path, waiting: int = 10, keep_days: float = 30) -> JobStore:
    return JobStore(folder / "batches", waiting, keep_days)


def work(store: JobStore, asking: Asking, concurrent: int = 2) -> None:
    asyncio.run(JobRunner(store, asking.ask, concurrent, first_wait_s=0).run_waiting())


def entries_of(store: JobStore, job_id: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(store.run(job_id))["questions"]
    return entries


@pytest.mark.parametrize("answers", [True, False])
def test_a_batch_ends_in_a_run_in_the_order_of_its_questions(
    tmp_path: Path, service: SmallService, answers: bool
) -> None:
    store, asking = store_at(tmp_path), Asking(service)
    job = store.add(new_job(QUESTIONS, "citeray", answers))
    work(store, asking)
    assert store.progress(job.id).state == "done"
    entries = entries_of(store, job.id)
    assert [entry["id"] for entry in entries] == ["q1", "q2", "q3"]
    assert entries[0]["documents"][0].endswith("/1")
    assert all(("ideal_answer" in entry) == answers for entry in entries)


def test_jobs_are_worked_on_in_the_order_in_which_they_came(
    tmp_path: Path, service: SmallService
) -> None:
    store, asking = store_at(tmp_path), Asking(service)
    for n, name in enumerate(("zeta", "alpha")):
        question = replace(QUESTIONS[0], id=name)
        store.add(replace(new_job([question], "bm25", False, name), created=100.0 + n))
    work(store, asking)
    assert asking.asked == ["zeta", "alpha"]


def test_a_question_without_an_answer_is_named_and_the_others_go_on(
    tmp_path: Path, service: SmallService
) -> None:
    store, asking = store_at(tmp_path), Asking(service)

    def fail(question: Question) -> None:
        if question.id == "q2":
            raise StageLostError("no shard of the index answered")

    asking.trouble = fail
    job = store.add(new_job(QUESTIONS, "citeray", True))
    work(store, asking)
    progress = store.progress(job.id)
    assert (progress.state, progress.done) == ("done", 2)
    assert progress.failed == {"q2": "no shard of the index answered"}
    assert [entry["id"] for entry in entries_of(store, job.id)] == ["q1", "q3"]
    assert asking.asked.count("q2") > 1, "a lost stage may come back"


def test_a_lost_stage_that_comes_back_costs_no_answer(
    tmp_path: Path, service: SmallService
) -> None:
    store, asking = store_at(tmp_path), Asking(service)

    def fail_twice(question: Question) -> None:
        if asking.asked.count(question.id) < 3:
            raise StageLostError("gone for a moment")

    asking.trouble = fail_twice
    job = store.add(new_job(QUESTIONS, "citeray", True))
    work(store, asking)
    assert store.progress(job.id).done == 3
    assert store.progress(job.id).failed == {}


def test_a_batch_of_which_nothing_could_be_answered_has_failed(
    tmp_path: Path, service: SmallService
) -> None:
    store, asking = store_at(tmp_path), Asking(service)

    def fail(question: Question) -> None:
        raise ValueError("secret")

    asking.trouble = fail
    job = store.add(new_job(QUESTIONS, "citeray", True))
    work(store, asking)
    progress = store.progress(job.id)
    assert progress.state == "failed"
    assert "secret" not in str(progress)
    with pytest.raises(BatchError, match="is failed"):
        store.run(job.id)


def test_a_cancelled_batch_asks_no_more(tmp_path: Path, service: SmallService) -> None:
    store, asking = store_at(tmp_path), Asking(service)
    job = store.add(new_job(QUESTIONS, "citeray", True))

    async def scenario() -> None:
        asking.go_on = asyncio.Event()
        runner = JobRunner(store, asking.ask, 1)
        running = asyncio.create_task(runner.run_waiting())
        while not asking.asked:
            await asyncio.sleep(0.01)
        store.cancel(job.id)
        asking.go_on.set()
        await running

    asyncio.run(scenario())
    assert asking.asked == ["q1"]
    assert store.progress(job.id).state == "cancelled"
    work(store, asking)
    assert asking.asked == ["q1"]


CRASHING = """
import asyncio, os, signal, sys
from pathlib import Path
from serve.batches.run_jobs import JobRunner
from tests.serve.batches.served import Asking
from tests.serve.batches.test_batches import store_at
from tests.serve.service import SmallService

folder = Path(sys.argv[1])
asking = Asking(SmallService(folder / "other-index"))

def die(question):
    if question.id == "q3":
        os.kill(os.getpid(), signal.SIGKILL)

asking.trouble = die
asyncio.run(JobRunner(store_at(folder), asking.ask, 1).run_waiting())
"""


def test_a_killed_process_loses_no_job_and_asks_nothing_twice(
    tmp_path: Path, service: SmallService
) -> None:
    store, asking = store_at(tmp_path), Asking(service)
    job = store.add(new_job(QUESTIONS, "citeray", True))
    command = [sys.executable, "-c", CRASHING, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    died = subprocess.run(command, env=environment, cwd=ROOT, check=False)
    assert died.returncode == -signal.SIGKILL
    assert (store.progress(job.id).state, store.progress(job.id).done) == ("running", 2)
    work(store_at(tmp_path), asking)
    assert asking.asked == ["q3"]
    assert [entry["id"] for entry in entries_of(store, job.id)] == ["q1", "q2", "q3"]


def test_one_id_is_one_batch(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    first = store.add(new_job(QUESTIONS, "citeray", True, "mine"))
    assert store.add(new_job(QUESTIONS, "citeray", True, "mine")).created == first.created
    with pytest.raises(BatchError, match="another batch's") as caught:
        store.add(new_job(QUESTIONS[:1], "citeray", True, "mine"))
    assert caught.value.status == 409
    assert store.ids() == ["mine"]


@pytest.mark.parametrize("job_id", ["../x", "a/b", ".", "-a", "a" * 65, "a\x00", "a b", "é"])
def test_an_id_is_no_path(tmp_path: Path, job_id: str) -> None:
    store = store_at(tmp_path)
    for use in (store.job, store.run, store.cancel):
        with pytest.raises(BatchError) as caught:
            use(job_id)
        assert caught.value.status == 422
    with pytest.raises(BatchError):
        store.add(new_job(QUESTIONS, "citeray", True, job_id))


def test_only_so_many_batches_wait(tmp_path: Path) -> None:
    store = store_at(tmp_path, waiting=2)
    for name in ("a", "b"):
        store.add(new_job(QUESTIONS, "citeray", True, name))
    with pytest.raises(BatchError, match="2 batches wait already") as caught:
        store.add(new_job(QUESTIONS, "citeray", True, "c"))
    assert (caught.value.status, caught.value.retry_after_s) == (429, 60)
    store.cancel("a")
    store.add(new_job(QUESTIONS, "citeray", True, "c"))


def test_an_ended_batch_is_forgotten_after_its_days(tmp_path: Path) -> None:
    store = store_at(tmp_path, keep_days=1)
    for name, days in (("old", 2.0), ("new", 0.5)):
        store.add(new_job(QUESTIONS, "citeray", True, name))
        store.keep(name, Progress("cancelled", ended=time.time() - days * 86_400))
    store.add(new_job(QUESTIONS, "citeray", True, "waiting"))
    assert set(store.ids()) == {"new", "waiting"}


def test_over_http_a_file_goes_in_and_its_run_comes_out(
    tmp_path: Path, service: SmallService
) -> None:
    with served(service, tmp_path, Asking(service)) as http:
        taken = http.post("/v1/batches", json={"questions": ROWS, "system": "hybrid"})
        assert taken.status_code == 202
        job = taken.json()
        assert (job["total"], job["system"]) == (3, "hybrid")
        end = time.monotonic() + 30
        while job["state"] != "done" and time.monotonic() < end:
            time.sleep(0.05)
            job = http.get(f"/v1/batches/{job['id']}").json()
        assert (job["state"], job["done"], job["failed"]) == ("done", 3, {})
        assert job["created"] <= job["ended"]
        run = http.get(f"/v1/batches/{job['id']}/run")
        assert [entry["id"] for entry in run.json()["questions"]] == ["q1", "q2", "q3"]
        assert f"run-{job['id']}.json" in run.headers["content-disposition"]
        assert [j["id"] for j in http.get("/v1/batches").json()["batches"]] == [job["id"]]


def test_over_http_a_batch_can_be_cancelled(tmp_path: Path, service: SmallService) -> None:
    asking = Asking(service)

    def slow(question: Question) -> None:
        time.sleep(0.2)

    asking.trouble = slow
    many = [{**ROWS[0], "id": f"q{n}"} for n in range(100)]
    with served(service, tmp_path, asking) as http:
        job = http.post("/v1/batches", json={"questions": many}).json()
        early = http.get(f"/v1/batches/{job['id']}/run")
        assert early.status_code == 409
        assert "has no run to give" in early.json()["error"]
        assert http.delete(f"/v1/batches/{job['id']}").json()["state"] == "cancelled"
        time.sleep(0.6)
        asked = len(asking.asked)
        time.sleep(0.6)
        assert len(asking.asked) == asked < 100


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"questions": []}, "questions"),
        ({"questions": [{"id": "q1", "type": "yesno"}]}, "question 0 (id q1): field body"),
        ({"questions": [7]}, "question 0: must be an object"),
        ({"questions": [ROWS[0], ROWS[0]]}, "is also that of question 0"),
        ({"questions": ROWS, "system": "best"}, "unknown; there are"),
        ({"questions": ROWS, "format": "trec"}, "format"),
        ({"questions": ROWS, "id": "../../etc"}, "id: must be 1 to 64"),
    ],
)
def test_what_is_no_batch_is_refused_in_one_sentence(
    tmp_path: Path, service: SmallService, body: dict[str, Any], said: str
) -> None:
    with served(service, tmp_path, Asking(service)) as http:
        reply = http.post("/v1/batches", json=body)
        assert reply.status_code == 422
        assert said in reply.json()["error"]
        assert http.get("/v1/batches").json() == {"batches": []}
        assert http.get("/v1/batches/none").status_code == 404
