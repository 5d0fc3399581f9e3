"""Jobs on disk: what is kept, what is refused, what is forgotten."""

from __future__ import annotations

import contextlib
import json
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from serve.batches.job_store import JobStore
from serve.batches.jobs import BatchError, Job, Progress, key_of, new_job
from tests.serve.batches.questions import QUESTIONS, add, ids, store_at


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    with store_at(tmp_path) as opened:
        yield opened


def test_what_is_kept_is_there_for_the_next_process(tmp_path: Path) -> None:
    with store_at(tmp_path) as store:
        for name in ("zeta", "alpha"):
            add(store, name)
        assert store.advance("zeta", Progress("running", done=2, failed={"q3": "lost"}))
        kept, progress = store.job("zeta"), store.progress("zeta")
        store.advance("zeta", progress, on_disk=True)
    with store_at(tmp_path) as again:
        assert ids(again) == ["zeta", "alpha"]
        assert again.job("zeta") == kept
        assert again.progress("zeta") == progress
        assert list(again.questions("zeta")) == QUESTIONS


def test_one_id_is_one_batch(store: JobStore) -> None:
    first = add(store)
    assert add(store) == first
    with pytest.raises(BatchError, match="used by another batch") as caught:
        add(store, questions=QUESTIONS[:1])
    assert caught.value.status == 409
    with pytest.raises(BatchError, match="used by another batch"):
        add(store, answers=True)
    assert ids(store) == ["mine"]


def test_of_requests_at_once_that_share_an_id_one_is_taken(store: JobStore) -> None:
    taken: list[str] = []

    def ask(body: str) -> None:
        questions = [replace(QUESTIONS[0], body=body)]
        with contextlib.suppress(BatchError):
            taken.append(add(store, "same", questions).digest)

    threads = [threading.Thread(target=ask, args=(f"Question {n}?",)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1
    assert store.job("same").digest == taken[0]


@pytest.mark.parametrize("job_id", ["../x", "a/b", ".", "..", "-a", "a" * 65, "a\x00", "a b", "é"])
def test_an_id_is_no_path(store: JobStore, job_id: str) -> None:
    for use in (store.job, store.run, store.cancel, store.progress, store.questions):
        with pytest.raises(BatchError) as caught:
            use(job_id)
        assert caught.value.status == 422
    with pytest.raises(BatchError):
        store.add(new_job(QUESTIONS, "citeray", True, job_id), QUESTIONS)


def test_an_ended_batch_is_forgotten_after_its_days(tmp_path: Path) -> None:
    with store_at(tmp_path, keep_days=1) as store:
        for name, days in (("old", 2.0), ("new", 0.5)):
            add(store, name)
            store.advance(name, Progress("cancelled", ended=time.time() - days * 86_400))
        add(store, "waiting")
        assert ids(store) == ["new", "waiting"]
        assert not (tmp_path / "batches" / "old").exists()


def test_what_was_cancelled_stays_so_whatever_is_said_of_it_later(tmp_path: Path) -> None:
    with store_at(tmp_path) as store:
        add(store)
        assert store.cancel("mine").state == "cancelled"
        for late in ("running", "done", "failed"):
            assert not store.advance("mine", Progress(late, done=3))  # type: ignore[arg-type]
        assert store.cancel("mine").state == "cancelled"
        assert store.next() is None
    with store_at(tmp_path) as again:
        assert again.progress("mine").state == "cancelled"


def test_a_cancelled_batch_takes_next_to_no_room(tmp_path: Path) -> None:
    many = [replace(QUESTIONS[0], id=f"q{n}") for n in range(5000)]
    with store_at(tmp_path) as store:
        add(store, "big", many)
        store.cancel("big")
        kept = list((tmp_path / "batches" / "big").iterdir())
        assert sum(path.stat().st_size for path in kept) < 1000
        assert add(store, "big", many).total == 5000
        with pytest.raises(BatchError, match="used by another batch"):
            add(store, "big", many[:-1])


@pytest.mark.parametrize("name", ["job.json", "state.json"])
@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"done": "x"}', b"\xff"])
def test_a_damaged_job_stops_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, content: bytes | None
) -> None:
    with store_at(tmp_path) as store:
        for job_id in ("damaged", "whole"):
            add(store, job_id)
    path = tmp_path / "batches" / "damaged" / name
    path.unlink() if content is None else path.write_bytes(content)
    with store_at(tmp_path) as again:
        assert ids(again) == ["whole"]
        assert again.next() == again.job("whole")
        with pytest.raises(BatchError, match="no batch damaged is here"):
            again.progress("damaged")
        add(again, "damaged")
    # Without its last file a job has never been told to be taken.
    assert ("damaged" in caplog.text) == (name == "state.json" or content is not None)


def test_what_lies_there_of_a_forgotten_job_is_none_of_the_next_one_s(tmp_path: Path) -> None:
    left = tmp_path / "batches" / "mine"
    left.mkdir(parents=True)
    (left / "run.json").write_text(json.dumps({"questions": []}))
    (left / "notes.txt").write_text("not ours")
    with store_at(tmp_path) as store:
        add(store)
        assert not store.run_file("mine").exists()
        assert (left / "notes.txt").read_text() == "not ours"


def test_two_processes_do_not_work_on_one_folder(tmp_path: Path) -> None:
    with store_at(tmp_path), pytest.raises(BatchError, match="another process") as caught:
        JobStore(tmp_path / "batches", 10, 30)
    assert caught.value.status == 503
    assert "serve.batches.folder" in caught.value.message
    with store_at(tmp_path) as store:
        assert store.all() == []


def test_one_key_does_not_take_the_places_of_others(tmp_path: Path) -> None:
    def job(owner: str, name: str) -> Job:
        return new_job(QUESTIONS, "citeray", False, name, owner)

    with contextlib.closing(JobStore(tmp_path / "batches", 5, 30, 2)) as store:
        for name in ("a", "b"):
            store.add(job("alice", name), QUESTIONS)
        with pytest.raises(BatchError, match="2 batches of alice wait already") as caught:
            store.add(job("alice", "c"), QUESTIONS)
        assert (caught.value.status, caught.value.retry_after_s) == (429, 60)
        for name in ("a", "b"):
            store.add(job("bob", name), QUESTIONS)
        # One that is there already takes no place.
        store.add(job("alice", "b"), QUESTIONS)
        store.cancel(job("alice", "a").key)
        store.add(job("alice", "c"), QUESTIONS)
        store.add(job("carol", "a"), QUESTIONS)
        with pytest.raises(BatchError, match="5 batches wait already"):
            store.add(job("carol", "b"), QUESTIONS)


@pytest.mark.parametrize("owner", ["alice", "a.b-c_d", "..", "."])
def test_two_owners_may_each_have_a_batch_of_one_id(tmp_path: Path, owner: str) -> None:
    theirs = new_job(QUESTIONS[:1], "citeray", False, "mine", owner)
    with store_at(tmp_path) as store:
        add(store)
        store.add(theirs, QUESTIONS[:1])
        store.cancel(theirs.key)
    folders = {path.name for path in (tmp_path / "batches").glob("*/")}
    assert folders == {"mine", f"{owner}.mine"}
    with store_at(tmp_path) as again:
        assert (again.job("mine").total, again.job(theirs.key).total) == (3, 1)
        assert again.progress("mine").state == "waiting"
        assert again.progress(theirs.key).state == "cancelled"
    for job_id in ("bob.mine", ".mine", "a."):
        with pytest.raises(BatchError, match="id: must be"):
            key_of(job_id, owner)


def test_batches_are_nobody_elses_on_the_machine_and_older_ones_become_so(tmp_path: Path) -> None:
    folder = tmp_path / "batches"
    with store_at(tmp_path) as store:
        store.add(new_job(QUESTIONS, "citeray", False, "mine", "alice"), QUESTIONS)
    assert stat.S_IMODE((folder / "alice.mine").stat().st_mode) == 0o700
    # As the first versions left them.
    (folder / "alice.mine").rename(folder / "mine")
    (folder / "mine").chmod(0o755)
    with store_at(tmp_path) as again:
        assert list(again.questions("alice.mine")) == QUESTIONS
    assert stat.S_IMODE((folder / "alice.mine").stat().st_mode) == 0o700
