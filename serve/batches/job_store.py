"""Batch jobs on disk: what was asked, how far it is, and what is answered.

FOLDER/ID/job.json, questions.json (what was asked), state.json, run.json.partial, run.json.
What a killed process has said of a job, its next one reads there.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from cluster.answers import Question
from cluster.storage.whole_files import require_writable, write_atomically
from serve.batches.jobs import ENDED, JOB_ID, BatchError, Job, Progress
from serve.formats.bioasq import Entry, read_so_far

log = logging.getLogger("citeray")

JOB, PROGRESS = TypeAdapter(Job), TypeAdapter(Progress)
QUESTIONS = TypeAdapter(tuple[Question, ...])
# What a job needs no more once it has ended.
NEEDED = ("questions.json", "run.json.partial")
# How often the state of a job at work goes to disk; its entries are kept there one by one.
STATE_EVERY_S = 1.0
FULL_RETRY_S = 60
TAKEN_RETRY_S = 5


class JobStore:
    """The jobs of `folder`, of which ended ones are kept `keep_days`. Threads may share it.

    One store works on a folder at a time: raises BatchError while another one does, and
    StorageError where nothing can be written. A job that cannot be read is logged and left out.
    """

    def __init__(self, folder: Path, most_waiting: int, keep_days: float) -> None:
        self._folder = folder
        self._most_waiting = most_waiting
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
                if job.id != path.parent.name:
                    raise ValueError(f"it is a copy of {job.id}")
            except (OSError, ValueError) as error:
                log.error("batches: %s is left out, as it cannot be read: %s", path.parent, error)
                continue
            self._jobs[job.id], self._progress[job.id] = job, progress
        order = sorted(self._jobs.values(), key=lambda job: (job.created, job.id))
        self._jobs = {job.id: job for job in order}

    def place(self, job_id: str) -> Path:
        """The job's folder; raises BatchError for an id that is none."""
        if not JOB_ID.fullmatch(job_id):
            raise BatchError(
                "id: must be 1 to 64 letters, digits, dashes and underscores, the first a letter"
                " or a digit",
                422,
            )
        return self._folder / job_id

    def add(self, job: Job, questions: Sequence[Question]) -> Job:
        """Keep a new job, or give the one that has its id and asks the same.

        Raises BatchError where the id has another job, or too many wait.
        """
        place = self.place(job.id)
        with self._lock:
            if known := self._jobs.get(job.id):
                if known.digest != job.digest:
                    raise BatchError(f"id {job.id} is another batch's; give this one another", 409)
                return known
            self.remove_expired()
            waiting = sum(progress.state not in ENDED for progress in self._progress.values())
            if waiting >= self._most_waiting:
                said = f"{waiting} batches wait already; send this one later"
                raise BatchError(said, 429, FULL_RETRY_S)
            # Left by a process that was killed while it forgot another job.
            self._remove(job.id, "run.json", *NEEDED)
            job = replace(job, created=time.time())
            write_atomically(place / "questions.json", QUESTIONS.dump_json(tuple(questions)))
            self._write(job.id, Progress())
            # Last: a job is there once this is.
            write_atomically(place / "job.json", JOB.dump_json(job))
            self._jobs[job.id], self._progress[job.id] = job, Progress()
            return job

    def all(self) -> list[tuple[Job, Progress]]:
        """In the order in which they came."""
        with self._lock:
            return [(job, self._progress[job_id]) for job_id, job in self._jobs.items()]

    def next(self) -> Job | None:
        """The job to work on: of those that have not ended the one that came first."""
        with self._lock:
            unended = (job for job, progress in self.all() if progress.state not in ENDED)
            return next(unended, None)

    def job(self, job_id: str, owner: str | None = None) -> Job:
        """Raises BatchError where there is none, or none of that owner's."""
        self.place(job_id)
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or owner not in (None, job.owner):
                raise BatchError(f"no batch {job_id} is here; it may have been forgotten", 404)
            return job

    def questions(self, job_id: str) -> tuple[Question, ...]:
        """Of a job that has not ended. Raises ValueError where they are damaged or gone."""
        path = self.place(job_id) / "questions.json"
        try:
            return QUESTIONS.validate_json(path.read_bytes())
        except FileNotFoundError:
            raise ValueError(f"{path}: gone; somebody removed it") from None

    def progress(self, job_id: str) -> Progress:
        """How far the job is; raises BatchError where there is none."""
        with self._lock:
            self.job(job_id)
            return self._progress[job_id]

    def goes_on(self, job_id: str) -> bool:
        """Whether it has neither ended nor been forgotten."""
        with self._lock:
            progress = self._progress.get(job_id)
            return progress is not None and progress.state not in ENDED

    def advance(self, job_id: str, progress: Progress, *, on_disk: bool = False) -> bool:
        """Keep how far a job is, unless it has ended; whether it had not.

        `on_disk` waits for the disk, as a job's end does.
        """
        with self._lock:
            if not self.goes_on(job_id):
                return False
            ends = progress.state in ENDED
            if (
                ends
                or on_disk
                or time.monotonic() - self._written.get(job_id, 0.0) >= STATE_EVERY_S
            ):
                self._write(job_id, progress)
            self._progress[job_id] = progress
            if ends:
                self._remove(job_id, *NEEDED)
            return True

    def _remove(self, job_id: str, *names: str) -> None:
        for name in names:
            (self.place(job_id) / name).unlink(missing_ok=True)

    def _write(self, job_id: str, progress: Progress) -> None:
        write_atomically(self.place(job_id) / "state.json", PROGRESS.dump_json(progress))
        self._written[job_id] = time.monotonic()

    def cancel(self, job_id: str) -> Progress:
        """Cancelled, unless it has ended already."""
        with self._lock:
            progress = self.progress(job_id)
            ended = replace(progress, state="cancelled", eta_s=None, ended=time.time())
            self.advance(job_id, ended)
            return self._progress[job_id]

    def cancel_or_forget(self, job_id: str) -> Progress:
        """Cancelled; one that has ended already is forgotten, and its run with it."""
        with self._lock:
            ended = not self.goes_on(job_id)
            progress = self.cancel(job_id)
            if ended:
                self._forget(job_id)
            return progress

    def run_file(self, job_id: str) -> Path:
        """Path of the job's run file, which may not exist yet."""
        return self.place(job_id) / "run.json"

    def run(self, job_id: str) -> bytes:
        """The finished run; raises BatchError where there is none yet."""
        state = self.progress(job_id).state
        if state != "done":
            raise BatchError(f"batch {job_id} is {state}, and has no run to give", 409)
        return self.run_file(job_id).read_bytes()

    def results(self, job_id: str, after: int, count: int) -> list[Entry]:
        """Up to `count` entries of the run behind the first `after`; none once it is cancelled."""
        self.job(job_id)
        return read_so_far(self.run_file(job_id), after, count)

    def remove_expired(self) -> None:
        """Forget the jobs that ended longer ago than they are kept."""
        with self._lock:
            for job_id, progress in list(self._progress.items()):
                if progress.state in ENDED and time.time() - progress.ended > self._keep_s:
                    self._forget(job_id)

    def _forget(self, job_id: str) -> None:
        # First: a job is there as long as this is.
        self._remove(job_id, "job.json")
        if self.place(job_id).is_dir():
            shutil.rmtree(self.place(job_id))
        del self._jobs[job_id], self._progress[job_id]
