"""Store batch jobs on disk: their questions, progress and results.

The files of a job are FOLDER/KEY/job.json, questions.json, state.json, run.json.partial and
run.json, where KEY is the job's id, or OWNER.ID if it was sent with an API key. A new process
continues from these files after a crash. Only the user of this process can read the folder.
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
from cluster.storage.disk_faults import explain_disk_faults
from cluster.storage.whole_files import require_writable, write_atomically
from serve.batches.jobs import ENDED, BatchError, Job, Progress, key_of
from serve.formats.bioasq import Entry, read_so_far

log = logging.getLogger("citeray")

JOB, PROGRESS = TypeAdapter(Job), TypeAdapter(Progress)
QUESTIONS = TypeAdapter(tuple[Question, ...])
# Files that are removed when a job has ended.
NEEDED = ("questions.json", "run.json.partial")
# Interval between writes of a running job's state. Each entry is written when it arrives.
STATE_EVERY_S = 1.0
FULL_RETRY_S = 60
# Other users of the machine must not read questions and answers.
PRIVATE = 0o700
TAKEN_RETRY_S = 5


class JobStore:
    """Jobs in `folder`; ended jobs are kept for `keep_days`. Thread-safe.

    At most `most_waiting` jobs may wait, and at most `most_per_key` of one owner. The argument
    `job_key` of the methods is `Job.key`. Only one store may use a folder at a time: raises
    BatchError while another process uses it, and StorageError if the folder is not writable. A job
    that cannot be read is logged and left out.
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
                f"another process works on the batches in {folder}; stop it, or set"
                " serve.batches.folder to another folder",
                503,
                TAKEN_RETRY_S,
            ) from None
        self._lock = threading.RLock()
        self._written: dict[str, float] = {}
        self._jobs: dict[str, Job] = {}
        self._progress: dict[str, Progress] = {}
        self._load()

    def close(self) -> None:
        """Release the folder, so that another store can use it."""
        self._taken.release()

    def _load(self) -> None:
        for path in self._folder.glob("*/job.json"):
            try:
                job = JOB.validate_json(path.read_bytes())
                progress = PROGRESS.validate_json((path.parent / "state.json").read_bytes())
                self._take_place(job, path.parent)
            except (OSError, ValueError, BatchError) as error:
                log.error("batches: %s cannot be read and is left out: %s", path.parent, error)
                continue
            self._jobs[job.key], self._progress[job.key] = job, progress
        order = sorted(self._jobs.values(), key=lambda job: (job.created, job.id))
        self._jobs = {job.key: job for job in order}

    def _take_place(self, job: Job, found: Path) -> None:
        """Make the job's folder private and name it after `Job.key`, unlike older versions.

        Raises ValueError if the folder is a copy of another job's folder.
        """
        folder = self.place(job.key)
        if found.name not in (job.id, job.key) or (found != folder and folder.exists()):
            raise ValueError(f"it is a duplicate of {job.id}")
        # Write only if a change is needed: a full disk must not hide a job.
        if found.stat().st_mode & 0o777 != PRIVATE:
            found.chmod(PRIVATE)
        if found != folder:
            found.rename(folder)

    def place(self, job_key: str) -> Path:
        """Return the job's folder. Raises BatchError if the key is invalid."""
        owner, _, job_id = job_key.rpartition(".")
        return self._folder / key_of(job_id, owner)

    def add(self, job: Job, questions: Sequence[Question]) -> Job:
        """Store a new job, or return the owner's job with the same id and the same questions.

        Raises BatchError if the owner has another job with this id, or if too many jobs wait.
        """
        folder = self.place(job.key)
        with self._lock:
            if known := self._jobs.get(job.key):
                if known.digest != job.digest:
                    raise BatchError(f"id {job.id} is used by another batch; choose another", 409)
                return known
            self.remove_expired()
            self._require_room(job.owner)
            # A process that was killed while it removed an earlier job may have left these files.
            self._remove(job.key, "run.json", *NEEDED)
            job = replace(job, created=time.time())
            self._make_private(folder)
            write_atomically(folder / "questions.json", QUESTIONS.dump_json(tuple(questions)))
            self._write(job.key, Progress())
            # Write this last: a job exists once job.json exists.
            write_atomically(folder / "job.json", JOB.dump_json(job))
            self._jobs[job.key], self._progress[job.key] = job, Progress()
            return job

    def _make_private(self, path: Path) -> None:
        with explain_disk_faults(path):
            path.mkdir(mode=PRIVATE, exist_ok=True)
            path.chmod(PRIVATE)

    def _require_room(self, owner: str) -> None:
        """Raise BatchError if no more jobs of the owner may wait."""
        waiting = [
            self._jobs[key].owner for key, p in self._progress.items() if p.state not in ENDED
        ]
        if len(waiting) >= self._most_waiting:
            said = f"{len(waiting)} batches wait already; try again later"
        elif owner and waiting.count(owner) >= self._most_per_key:
            said = f"{self._most_per_key} batches of {owner} wait already; try again later"
        else:
            return
        raise BatchError(said, 429, FULL_RETRY_S)

    def all(self) -> list[tuple[Job, Progress]]:
        """Return all jobs with their progress, in the order of arrival."""
        with self._lock:
            return [(job, self._progress[job_id]) for job_id, job in self._jobs.items()]

    def next(self, owners: Container[str] = ()) -> Job | None:
        """Return the first job that has not ended and whose owner is not in `owners`, or None."""
        with self._lock:
            unended = (job for job, progress in self.all() if progress.state not in ENDED)
            return next((job for job in unended if job.owner not in owners), None)

    def job(self, job_key: str) -> Job:
        """Return the job. Raises BatchError if it does not exist."""
        self.place(job_key)
        with self._lock:
            job = self._jobs.get(job_key)
            if job is None:
                job_id = job_key.rpartition(".")[2]
                raise BatchError(f"there is no batch {job_id}; it may have been deleted", 404)
            return job

    def questions(self, job_key: str) -> tuple[Question, ...]:
        """Return the questions of a job that has not ended.

        Raises ValueError if their file is damaged or missing.
        """
        path = self.place(job_key) / "questions.json"
        try:
            return QUESTIONS.validate_json(path.read_bytes())
        except FileNotFoundError:
            raise ValueError(f"{path}: the file is missing") from None

    def progress(self, job_key: str) -> Progress:
        """Return the progress of the job. Raises BatchError if the job does not exist."""
        with self._lock:
            self.job(job_key)
            return self._progress[job_key]

    def goes_on(self, job_key: str) -> bool:
        """Return True if the job exists and has not ended."""
        with self._lock:
            progress = self._progress.get(job_key)
            return progress is not None and progress.state not in ENDED

    def advance(self, job_key: str, progress: Progress, *, on_disk: bool = False) -> bool:
        """Update the progress of a job. Return False if the job has ended or been removed.

        Progress is written to disk at intervals, but always if `on_disk` is set or if the job ends.
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
        """Cancel the job unless it has ended, and return its progress."""
        with self._lock:
            progress = self.progress(job_key)
            ended = replace(progress, state="cancelled", eta_s=None, ended=time.time())
            self.advance(job_key, ended)
            return self._progress[job_key]

    def cancel_or_forget(self, job_key: str) -> Progress:
        """Cancel the job, or delete it with its results if it has ended. Return its progress."""
        with self._lock:
            ended = not self.goes_on(job_key)
            progress = self.cancel(job_key)
            if ended:
                self._forget(job_key)
            return progress

    def run_file(self, job_key: str) -> Path:
        """Return the path of the job's run file, which may not exist yet."""
        return self.place(job_key) / "run.json"

    def run(self, job_key: str) -> bytes:
        """Return the content of the finished run file. Raises BatchError if it is not finished."""
        state = self.progress(job_key).state
        if state != "done":
            raise BatchError(
                f"batch {self.job(job_key).id} is {state}, and has no run file yet", 409
            )
        return self.run_file(job_key).read_bytes()

    def results(self, job_key: str, after: int, count: int) -> list[Entry]:
        """Return up to `count` entries after the first `after`; none if the job was cancelled."""
        self.job(job_key)
        return read_so_far(self.run_file(job_key), after, count)

    def remove_expired(self) -> None:
        """Delete the jobs that ended more than `keep_days` ago."""
        with self._lock:
            for job_key, progress in list(self._progress.items()):
                if progress.state in ENDED and time.time() - progress.ended > self._keep_s:
                    self._forget(job_key)

    def _forget(self, job_key: str) -> None:
        # Remove this first: a job exists as long as job.json exists.
        self._remove(job_key, "job.json")
        if self.place(job_key).is_dir():
            shutil.rmtree(self.place(job_key))
        del self._jobs[job_key], self._progress[job_key]
