"""Batch jobs on disk: what was asked, how far it is, and what is answered.

FOLDER/KEY/job.json, questions.json (what was asked), state.json, run.json.partial, run.json, where
KEY is the job's id, or OWNER.ID where it came with an API key. What a killed process has said of a
job, its next one reads there. The folder is for this process' user alone.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from cluster.answers import Question
from cluster.storage.disk_faults import naming_disk_faults
from cluster.storage.whole_files import require_writable, write_atomically
from serve.batches.jobs import ENDED, BatchError, Job, Progress, key_of
from serve.formats.bioasq import Entry, read_so_far

log = logging.getLogger("citeray")

JOB, PROGRESS = TypeAdapter(Job), TypeAdapter(Progress)
QUESTIONS = TypeAdapter(tuple[Question, ...])
# What a job needs no more once it has ended.
NEEDED = ("questions.json", "run.json.partial")
# How often the state of a job at work goes to disk; its entries are kept there one by one.
STATE_EVERY_S = 1.0
FULL_RETRY_S = 60
# What is asked and answered is nobody else's on the machine.
PRIVATE = 0o700
TAKEN_RETRY_S = 5


class JobStore:
    """The jobs of `folder`, of which ended ones are kept `keep_days`. Threads may share it.

    `most_waiting` jobs may wait, of one owner at most `most_per_key`. `job_key` is a job's `key`.
    One store works on a folder at a time: raises BatchError while another one does, and
    StorageError where nothing can be written. A job that cannot be read is logged and left out.
    """

    def __init__(
        self,
        folder: Path,
        most_waiting: int,
        keep_days: float,
        most_per_key: int | None = None,
    ) -> None:
        self._folder = folder
        self._most_waiting = most_waiting
        self._most_per_key = most_per_key or most_waiting
        self._keep_s = keep_days * 86_400
        require_writable(folder)
        self._taken = FileLock(folder / ".lock", timeout=0, thread_local=False)
        try:
            self._taken.acquire()
        except Timeout:
            raise BatchError(
                f"another process works on the batches in {folder}; end it, or give this one a"
                " folder of its own in serve.batches.folder",
                503,
                TAKEN_RETRY_S,
            ) from None
        self._lock = threading.RLock()
        self._written: dict[str, float] = {}
        self._jobs: dict[str, Job] = {}
        self._progress: dict[str, Progress] = {}
        self._load()

    def close(self) -> None:
        """Let another store work on the folder."""
        self._taken.release()

    def _load(self) -> None:
        for path in self._folder.glob("*/job.json"):
            try:
                job = JOB.validate_json(path.read_bytes())
                progress = PROGRESS.validate_json((path.parent / "state.json").read_bytes())
                self._take_place(job, path.parent)
            except (OSError, ValueError, BatchError) as error:
                log.error("batches: %s is left out, as it cannot be read: %s", path.parent, error)
                continue
            self._jobs[job.key], self._progress[job.key] = job, progress
        order = sorted(self._jobs.values(), key=lambda job: (job.created, job.id))
        self._jobs = {job.key: job for job in order}

    def _take_place(self, job: Job, found: Path) -> None:
        """Have a job's folder by its key and closed to others, as older ones may not be.

        Raises ValueError for a folder that is another job's.
        """
        place = self.place(job.key)
        if found.name not in (job.id, job.key) or (found != place and place.exists()):
            raise ValueError(f"it is a copy of {job.id}")
        found.chmod(PRIVATE)
        found.rename(place)

    def place(self, job_key: str) -> Path:
        """The job's folder; raises BatchError for a key that is none."""
        owner, _, job_id = job_key.rpartition(".")
        return self._folder / key_of(job_id, owner)

    def add(self, job: Job, questions: Sequence[Question]) -> Job:
        """Keep a new job, or give its owner's that has its id and asks the same.

        Raises BatchError where the id is that of another job of the owner, or too many wait.
        """
        place = self.place(job.key)
        with self._lock:
            if known := self._jobs.get(job.key):
                if known.digest != job.digest:
                    raise BatchError(f"id {job.id} is another batch's; give this one another", 409)
                return known
            self.remove_expired()
            self._require_room(job.owner)
            # Left by a process that was killed while it forgot another job.
            self._remove(job.key, "run.json", *NEEDED)
            job = replace(job, created=time.time())
            self._make_private(place)
            write_atomically(place / "questions.json", QUESTIONS.dump_json(tuple(questions)))
            self._write(job.key, Progress())
            # Last: a job is there once this is.
            write_atomically(place / "job.json", JOB.dump_json(job))
            self._jobs[job.key], self._progress[job.key] = job, Progress()
            return job

    def _make_private(self, place: Path) -> None:
        with naming_disk_faults(place):
            place.mkdir(mode=PRIVATE, exist_ok=True)
            place.chmod(PRIVATE)

    def _require_room(self, owner: str) -> None:
        """Raise BatchError where no more jobs of the owner may wait."""
        waiting = [
            self._jobs[key].owner for key, p in self._progress.items() if p.state not in ENDED
        ]
        if len(waiting) >= self._most_waiting:
            said = f"{len(waiting)} batches wait already; send this one later"
        elif owner and waiting.count(owner) >= self._most_per_key:
            said = f"{self._most_per_key} batches of {owner} wait already; send this one later"
        else:
            return
        raise BatchError(said, 429, FULL_RETRY_S)

    def all(self) -> list[tuple[Job, Progress]]:
        """In the order in which they came."""
        with self._lock:
            return [(job, self._progress[job_id]) for job_id, job in self._jobs.items()]

    def next(self, owners: Container[str] = ()) -> Job | None:
        """The first that has not ended, of those whose owner is none of `owners`."""
        with self._lock:
            unended = (job for job, progress in self.all() if progress.state not in ENDED)
            return next((job for job in unended if job.owner not in owners), None)

    def job(self, job_key: str) -> Job:
        """Raises BatchError where there is none."""
        self.place(job_key)
        with self._lock:
            job = self._jobs.get(job_key)
            if job is None:
                job_id = job_key.rpartition(".")[2]
                raise BatchError(f"no batch {job_id} is here; it may have been forgotten", 404)
            return job

    def questions(self, job_key: str) -> tuple[Question, ...]:
        """Of a job that has not ended. Raises ValueError where they are damaged or gone."""
        path = self.place(job_key) / "questions.json"
        try:
            return QUESTIONS.validate_json(path.read_bytes())
        except FileNotFoundError:
            raise ValueError(f"{path}: gone; somebody removed it") from None

    def progress(self, job_key: str) -> Progress:
        """How far the job is; raises BatchError where there is none."""
        with self._lock:
            self.job(job_key)
            return self._progress[job_key]

    def goes_on(self, job_key: str) -> bool:
        """Whether it has neither ended nor been forgotten."""
        with self._lock:
            progress = self._progress.get(job_key)
            return progress is not None and progress.state not in ENDED

    def advance(self, job_key: str, progress: Progress, *, on_disk: bool = False) -> bool:
        """Keep how far a job is, unless it has ended; whether it had not.

        `on_disk` waits for the disk, as a job's end does.
        """
        with self._lock:
            if not self.goes_on(job_key):
                return False
            ends = progress.state in ENDED
            if (
                ends
                or on_disk
                or time.monotonic() - self._written.get(job_key, 0.0) >= STATE_EVERY_S
            ):
                self._write(job_key, progress)
            self._progress[job_key] = progress
            if ends:
                self._remove(job_key, *NEEDED)
            return True

    def _remove(self, job_key: str, *names: str) -> None:
        for name in names:
            (self.place(job_key) / name).unlink(missing_ok=True)

    def _write(self, job_key: str, progress: Progress) -> None:
        write_atomically(self.place(job_key) / "state.json", PROGRESS.dump_json(progress))
        self._written[job_key] = time.monotonic()

    def cancel(self, job_key: str) -> Progress:
        """Cancelled, unless it has ended already."""
        with self._lock:
            progress = self.progress(job_key)
            ended = replace(progress, state="cancelled", eta_s=None, ended=time.time())
            self.advance(job_key, ended)
            return self._progress[job_key]

    def cancel_or_forget(self, job_key: str) -> Progress:
        """Cancelled; one that has ended already is forgotten, and its run with it."""
        with self._lock:
            ended = not self.goes_on(job_key)
            progress = self.cancel(job_key)
            if ended:
                self._forget(job_key)
            return progress

    def run_file(self, job_key: str) -> Path:
        """Path of the job's run file, which may not exist yet."""
        return self.place(job_key) / "run.json"

    def run(self, job_key: str) -> bytes:
        """The finished run; raises BatchError where there is none yet."""
        state = self.progress(job_key).state
        if state != "done":
            raise BatchError(
                f"batch {self.job(job_key).id} is {state}, and has no run to give", 409
            )
        return self.run_file(job_key).read_bytes()

    def results(self, job_key: str, after: int, count: int) -> list[Entry]:
        """Up to `count` entries of the run behind the first `after`; none once it is cancelled."""
        self.job(job_key)
        return read_so_far(self.run_file(job_key), after, count)

    def remove_expired(self) -> None:
        """Forget the jobs that ended longer ago than they are kept."""
        with self._lock:
            for job_key, progress in list(self._progress.items()):
                if progress.state in ENDED and time.time() - progress.ended > self._keep_s:
                    self._forget(job_key)

    def _forget(self, job_key: str) -> None:
        # First: a job is there as long as this is.
        self._remove(job_key, "job.json")
        if self.place(job_key).is_dir():
            shutil.rmtree(self.place(job_key))
        del self._jobs[job_key], self._progress[job_key]
