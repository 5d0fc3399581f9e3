from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Question, SearchResult
from cluster.errors import StorageError
from serve.batches.job_store import JobStore
from serve.batches.jobs import BatchError
from serve.batches.run_jobs import JobRunner
from serve.client.answer_batch import bioasq_batch
from serve.contracts.stage_watch import StageLostError
from serve.formats.bioasq import RunWriter
from tests.serve.awaited import awaited
from tests.serve.batches.served import QUESTIONS, Asking, add, entries_of, store_at, work
from tests.serve.client.service_client import ServiceClient, run_batch
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
    batch = bioasq_batch(questions, "citeray", answers=answers)
    run_batch(ServiceClient(service), batch, output, "citeray", answers=answers)
    assert store.run("mine") == output.read_bytes()
    assert ("not_enough_evidence" in store.progress("mine").verdicts) is answers
    first, *_, last = entries_of(store)
    assert first["documents"][0].endswith("/1")
    assert (last.get("exact_answer") in ("yes", "no")) is answers


def test_jobs_of_two_keys_take_turns(store: JobStore, asking: Asking) -> None:
    running: list[int] = []

    def count(result: SearchResult) -> SearchResult:
        running.append(len(asking.asked) - len(running))
        return result

    asking.change = count
    for owner, number in (("alice", 20), ("bob", 4)):
        asked = [replace(QUESTIONS[0], id=f"{owner}{n}") for n in range(number)]
        add(store, questions=asked, owner=owner)
    work(store, asking)
    assert asking.asked.index("bob3") < 16
    assert len(asking.asked) == 24
    assert max(running) == 2


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
    asking = Asking(SmallService(broken=("rerank",)))

    def move(result: SearchResult) -> SearchResult:
        moved = result.question.id == "q3"
        return replace(result, index_version="v000002") if moved else result

    asking.change = move
    add(store)
    work(store, asking, concurrent=1)
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


def test_answer_that_is_not_utf8_fails_only_its_question(store: JobStore, asking: Asking) -> None:
    def garble(result: SearchResult) -> SearchResult:
        broken = replace(result.question, body="half an emoji: \ud83d")
        return replace(result, question=broken) if broken.id == "q2" else result

    asking.change = garble
    add(store)
    work(store, asking)
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
@awaited
async def test_transient_storage_error_is_retried(
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
    async with asyncio.timeout(20):
        running = asyncio.create_task(JobRunner(store, asking.ask, 2).run_forever())
        while store.goes_on("mine"):
            await asyncio.sleep(0.02)
        running.cancel()
    assert (store.progress("mine").state, store.progress("mine").done) == ("done", 20)
    assert len(asking.asked) <= 20 + 2


@pytest.mark.parametrize("lost", [False, True])
@awaited
async def test_cancelled_job_neither_waits_for_running_questions_nor_retries(
    store: JobStore, asking: Asking, lost: bool
) -> None:
    add(store)
    add(store, "next", QUESTIONS[2:])

    def trouble(question: Question) -> None:
        if lost and question.id != "q3":
            raise StageLostError("gone")

    asking.trouble = trouble
    asking.go_on = asyncio.Event()
    running = asyncio.create_task(JobRunner(store, asking.ask, 2, first_wait_s=0.01).run_waiting())
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
    assert asking.asked == ["q1", "q2", "q3"]
    assert (store.progress("mine").state, store.progress("next").state) == ("cancelled", "done")
