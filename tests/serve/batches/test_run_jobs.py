"""The job runner: fairness, progress, failures, retries and cancellation."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cluster.answers import Answer, Question, SearchResult
from cluster.errors import StorageError
from serve.batches.job_store import JobStore
from serve.batches.jobs import BatchError
from serve.batches.run_jobs import JobRunner
from serve.client.answer_batch import answer_batch, bioasq_batch
from serve.contracts.stage_watch import StageLostError
from serve.formats.bioasq import RunWriter
from tests.serve.batches.served import QUESTIONS, Asking, add, entries_of, store_at, work
from tests.serve.client.test_answer_batch import ServiceClient
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow


@pytest.fixture
def asking(service: SmallService) -> Asking:
    return Asking(service)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    with store_at(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("answers", [True, False])
def test_run_equals_that_of_the_command(
    tmp_path: Path, service: SmallService, asking: Asking, store: JobStore, answers: bool
) -> None:
    unsure = Question("q5", "Does zelavit cure hiccups?", "yesno")
    questions = [*QUESTIONS, Question("q4", "What is AMPK?", "unknown"), unsure]
    add(store, questions=questions, answers=answers)
    work(store, asking)
    output = tmp_path / "run.json"
    client, batch = ServiceClient(service), bioasq_batch(questions, "citeray", answers=answers)
    log = Console(file=io.StringIO())
    answer_batch(client, batch, output, "citeray", answers=answers, concurrent=1, log=log)
    assert store.run("mine") == output.read_bytes()
    assert ("not_enough_evidence" in store.progress("mine").verdicts) is answers
    first, *_, last = entries_of(store)
    assert first["documents"][0].endswith("/1")
    assert (last.get("exact_answer") in ("yes", "no")) is answers


def test_jobs_of_two_keys_take_turns(store: JobStore, service: SmallService) -> None:
    at_once, most = 0, 0

    class Counting(Asking):
        async def ask(self, *how: Any) -> Answer | SearchResult:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            try:
                await asyncio.sleep(0)
                return await super().ask(*how)
            finally:
                at_once -= 1

    counting = Counting(service)
    for owner, count in (("alice", 40), ("bob", 4)):
        asked = [replace(QUESTIONS[0], id=f"{owner}{n}") for n in range(count)]
        add(store, questions=asked, owner=owner)
    work(store, counting)
    last_of_bob = counting.asked.index("bob3")
    assert last_of_bob < 16
    assert len(counting.asked) == 44
    assert most == 2


def test_progress_is_reported(store: JobStore, asking: Asking) -> None:
    many = [replace(QUESTIONS[0], id=f"q{n}") for n in range(8)]
    add(store, questions=many)
    seen: list[tuple[str, int, bool]] = []

    def look(question: Question) -> None:
        progress = store.progress("mine")
        seen.append((progress.state, progress.done, progress.eta_s is not None))

    asking.trouble = look
    before = time.time()
    work(store, asking, concurrent=1)
    assert seen == [("running", n, n > 0) for n in range(8)]
    progress = store.progress("mine")
    assert before <= progress.started <= progress.ended <= time.time()
    assert (progress.state, progress.index_version) == ("done", "v000001")


def test_losses_and_changes_of_the_index_version_are_counted(store: JobStore) -> None:
    class Moving(Asking):
        async def ask(self, question: Question, *how: Any) -> Answer | SearchResult:
            result = await super().ask(question, *how)
            return replace(result, index_version="v000002") if question.id == "q3" else result

    add(store)
    work(store, Moving(SmallService(broken=("rerank",))), concurrent=1)
    assert store.progress("mine").degraded == {
        "rerank: failed, first-stage order kept": 3,
        "index: moved on from v000001 to v000002": 1,
    }


def test_lost_stage_is_retried_and_a_failing_question_is_named(
    store: JobStore, asking: Asking
) -> None:
    def fail(question: Question) -> None:
        if question.id == "q2" or asking.asked.count(question.id) < 3:
            raise StageLostError("no shard of the index answered")

    asking.trouble = fail
    add(store)
    work(store, asking, patience_s=1)
    progress = store.progress("mine")
    assert (progress.state, progress.done) == ("done", 2)
    assert progress.failed == {"q2": "no shard of the index answered"}
    assert [entry["id"] for entry in entries_of(store)] == ["q1", "q3"]


def test_job_without_any_answer_fails(store: JobStore, asking: Asking) -> None:
    def fail(question: Question) -> None:
        raise ValueError("secret")

    asking.trouble = fail
    add(store)
    work(store, asking)
    progress = store.progress("mine")
    assert progress.state == "failed"
    assert "secret" not in str(progress)
    with pytest.raises(BatchError, match="is failed"):
        store.run("mine")


def test_answer_that_is_not_utf8_fails_only_its_question(
    store: JobStore, service: SmallService
) -> None:
    class Garbling(Asking):
        async def ask(self, question: Question, *how: Any) -> Answer | SearchResult:
            result = await super().ask(question, *how)
            if question.id == "q2":
                return replace(result, question=replace(question, body="half an emoji: \ud83d"))
            return result

    add(store)
    work(store, Garbling(service))
    assert (store.progress("mine").state, list(store.progress("mine").failed)) == ("done", ["q2"])


def test_damaged_job_does_not_block_others(store: JobStore, asking: Asking, tmp_path: Path) -> None:
    add(store, "damaged")
    add(store, "gone")
    add(store, "whole")
    (tmp_path / "batches" / "damaged" / "questions.json").write_text("[{}]")
    (tmp_path / "batches" / "gone" / "questions.json").unlink()
    work(store, asking)
    states = [progress.state for _, progress in store.all()]
    assert states == ["failed", "failed", "done"]


@pytest.mark.parametrize("error", [StorageError("the disk is full"), MemoryError()])
def test_transient_storage_error_is_retried(
    store: JobStore, asking: Asking, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    kept, calls = RunWriter.add, []

    def full_at_first(run: RunWriter, entry: dict[str, Any], note: Any) -> None:
        calls.append(entry["id"])
        if len(calls) == 1:
            raise error
        kept(run, entry, note)

    monkeypatch.setattr(RunWriter, "add", full_at_first)
    monkeypatch.setattr("serve.batches.run_jobs.POLL_S", 0.5)
    add(store, questions=[replace(QUESTIONS[0], id=f"q{n}") for n in range(20)])

    async def scenario() -> None:
        running = asyncio.create_task(JobRunner(store, asking.ask, 2).run_forever())
        while store.goes_on("mine"):
            await asyncio.sleep(0.02)
        running.cancel()

    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert (store.progress("mine").state, store.progress("mine").done) == ("done", 20)
    assert len(asking.asked) <= 20 + 2


@pytest.mark.parametrize("lost", [False, True])
def test_cancelled_job_neither_waits_for_running_questions_nor_retries(
    store: JobStore, asking: Asking, lost: bool
) -> None:
    add(store)
    add(store, "next", QUESTIONS[2:])

    def trouble(question: Question) -> None:
        if lost and question.id != "q3":
            raise StageLostError("gone")

    asking.trouble = trouble

    async def scenario() -> None:
        asking.go_on = asyncio.Event()
        running = asyncio.create_task(
            JobRunner(store, asking.ask, 2, first_wait_s=0.01).run_waiting()
        )
        while asking.asked != ["q1", "q2"]:
            await asyncio.sleep(0.01)
        store.cancel("mine")
        if lost:
            asking.go_on.set()
        async with asyncio.timeout(5):
            while asking.asked != ["q1", "q2", "q3"]:
                await asyncio.sleep(0.01)
        asking.go_on.set()
        await running

    asyncio.run(scenario())
    assert asking.asked == ["q1", "q2", "q3"]
    assert (store.progress("mine").state, store.progress("next").state) == ("cancelled", "done")
