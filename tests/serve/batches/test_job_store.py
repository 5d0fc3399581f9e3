from __future__ import annotations

import contextlib
import json
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from serve.batches.job_store import JobStore
from serve.batches.jobs import BatchError, Job, Progress, key_of, new_job
from tests.serve.batches.served import QUESTIONS, add, ids, store_at


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    with store_at(tmp_path) as opened:
        yield opened


def test_jobs_survive_a_restart(tmp_path: Path) -> None:
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


def test_id_cannot_be_reused_for_another_batch(store: JobStore) -> None:
    first = add(store)
    assert add(store) == first
    with pytest.raises(BatchError, match="used by another batch") as caught:
        add(store, questions=QUESTIONS[:1])
    assert caught.value.status == 409
    with pytest.raises(BatchError, match="used by another batch"):
        add(store, answers=True)
    assert ids(store) == ["mine"]


def test_concurrent_jobs_with_the_same_id_are_accepted_once(store: JobStore) -> None:
    def ask(number: int) -> str:
        with contextlib.suppress(BatchError):
            return add(store, "same", [replace(QUESTIONS[0], body=f"Question {number}?")]).digest
        return ""

    with ThreadPoolExecutor(20) as pool:
        taken = list(filter(None, pool.map(ask, range(20))))
    assert taken == [store.job("same").digest]


def test_invalid_id_is_refused(store: JobStore) -> None:
    uses: list[Callable[[str], object]] = [
        *(store.job, store.run, store.cancel, store.progress, store.questions),
        lambda name: add(store, name),
    ]
    for job_id in ["../x", "a/b", ".", "..", "-a", "a" * 65, "a\x00", "a b", "é"]:
        for use in uses:
            with pytest.raises(BatchError) as caught:
                use(job_id)
            assert caught.value.status == 422


def test_ended_job_expires(tmp_path: Path) -> None:
    with store_at(tmp_path, keep_days=1) as store:
        for name, days in (("old", 2.0), ("new", 0.5)):
            add(store, name)
            store.advance(name, Progress("cancelled", ended=time.time() - days * 86_400))
        add(store, "waiting")
        assert ids(store) == ["new", "waiting"]
        assert not (tmp_path / "batches" / "old").exists()


def test_cancelled_job_stays_cancelled_and_uses_little_disk_space(tmp_path: Path) -> None:
    many = [replace(QUESTIONS[0], id=f"q{n}") for n in range(5000)]
    with store_at(tmp_path) as store:
        add(store, questions=many)
        assert store.cancel("mine").state == "cancelled"
        for late in ("running", "done", "failed"):
            assert not store.advance("mine", Progress(late, done=3))  # type: ignore[arg-type]
        assert store.cancel("mine").state == "cancelled"
        assert store.next() is None
        kept = list((tmp_path / "batches" / "mine").iterdir())
        assert sum(path.stat().st_size for path in kept) < 1000
        # The same batch is accepted again, and another one is not.
        assert add(store, questions=many).total == 5000
        with pytest.raises(BatchError, match="used by another batch"):
            add(store, questions=many[:-1])
    with store_at(tmp_path) as again:
        assert again.progress("mine").state == "cancelled"


@pytest.mark.parametrize("name", ["job.json", "state.json"])
@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"done": "x"}', b"\xff"])
def test_damaged_job_is_left_out(
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
        with pytest.raises(BatchError, match="there is no batch damaged"):
            again.progress("damaged")
        add(again, "damaged")
    # A job without job.json was never accepted, so its absence is not logged.
    assert ("damaged" in caplog.text) == (name == "state.json" or content is not None)


def test_new_job_ignores_files_of_a_removed_one(tmp_path: Path) -> None:
    left = tmp_path / "batches" / "mine"
    left.mkdir(parents=True)
    (left / "run.json").write_text(json.dumps({"questions": []}))
    (left / "notes.txt").write_text("not ours")
    with store_at(tmp_path) as store:
        add(store)
        assert not store.run_file("mine").exists()
        assert (left / "notes.txt").read_text() == "not ours"


def test_waiting_jobs_are_limited_per_key_and_in_total(tmp_path: Path) -> None:
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
        # A job that is stored already does not count again.
        store.add(job("alice", "b"), QUESTIONS)
        store.cancel(job("alice", "a").key)
        store.add(job("alice", "c"), QUESTIONS)
        store.add(job("carol", "a"), QUESTIONS)
        with pytest.raises(BatchError, match="5 batches wait already"):
            store.add(job("carol", "b"), QUESTIONS)


@pytest.mark.parametrize("owner", ["alice", "a.b-c_d", "..", "."])
def test_two_owners_can_use_the_same_id(tmp_path: Path, owner: str) -> None:
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


def test_job_folders_are_private_and_older_ones_are_migrated(tmp_path: Path) -> None:
    folder = tmp_path / "batches"
    with store_at(tmp_path) as store:
        store.add(new_job(QUESTIONS, "citeray", False, "mine", "alice"), QUESTIONS)
    assert stat.S_IMODE((folder / "alice.mine").stat().st_mode) == 0o700
    # The first versions named the folder by the id and left it readable.
    (folder / "alice.mine").rename(folder / "mine")
    (folder / "mine").chmod(0o755)
    with store_at(tmp_path) as again:
        assert list(again.questions("alice.mine")) == QUESTIONS
    assert stat.S_IMODE((folder / "alice.mine").stat().st_mode) == 0o700
