"""Batch jobs on disk: what was asked, how far it is, and what is answered.

FOLDER/ID/job.json (what was asked), state.json, run.json.partial, run.json. Nothing is kept in
memory alone, so that a process that is killed loses no job.
"""

from __future__ import annotations

import json
import re
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from cluster.errors import CiteRayError
from cluster.records import Question
from cluster.storage import write_atomically

JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
State = Literal["waiting", "running", "done", "cancelled", "failed"]
ENDED = ("done", "cancelled", "failed")
MAX_FAILED_SHOWN = 100


class BatchError(CiteRayError):
    """A request about a batch that cannot be met; `status` is the reply's."""

    def __init__(self, message: str, status: int, retry_after_s: int = 0) -> None:
        super().__init__(message, status, retry_after_s)
        self.status = status
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Job:
    """What was asked for."""

    id: str
    system: str
    answers: bool
    questions: tuple[Question, ...]
    created: float

    @property
    def digest(self) -> str:
        """Of all but id and time; the same request has the same."""
        asked = (self.system, self.answers, [(q.id, q.body, q.type) for q in self.questions])
        return sha256(repr(asked).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is. `failed` has the questions that got no answer, with the reason."""

    state: State = "waiting"
    done: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    degraded: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    eta_s: float | None = None
    ended: float = 0.0


def new_job(questions: Sequence[Question], system: str, answers: bool, job_id: str = "") -> Job:
    return Job(job_id or uuid.uuid4().hex, system, answers, tuple(questions), time.time())


def when(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None


def described(job: Job, progress: Progress) -> dict[str, Any]:
    """The job as a reply tells it."""
    return {
        "id": job.id,
        "system": job.system,
        "answers": job.answers,
        "total": len(job.questions),
        "created": when(job.created),
        **asdict(progress),
        "failed": dict(list(progress.failed.items())[:MAX_FAILED_SHOWN]),
        "ended": when(progress.ended),
    }


class JobStore:
    """The jobs of `folder`, of which ended ones are kept `keep_days`."""

    def __init__(self, folder: Path, most_waiting: int, keep_days: float) -> None:
        self._folder = folder
        self._most_waiting = most_waiting
        self._keep_s = keep_days * 86_400
        folder.mkdir(parents=True, exist_ok=True)

    def place(self, job_id: str) -> Path:
        """The job's folder; raises BatchError for an id that is none."""
        if not JOB_ID.fullmatch(job_id):
            raise BatchError(
                "id: must be 1 to 64 letters, digits, dashes and underscores, no dash first", 422
            )
        return self._folder / job_id

    def add(self, job: Job) -> Job:
        """Keep a new job, or give the one that has its id and asks the same.

        Raises BatchError where the id has another job, or too many wait.
        """
        place = self.place(job.id)
        if (place / "job.json").exists():
            known = self.job(job.id)
            if known.digest != job.digest:
                raise BatchError(f"id {job.id} is another batch's; give this one another", 409)
            return known
        self.remove_expired()
        waiting = sum(self.progress(old).state not in ENDED for old in self.ids())
        if waiting >= self._most_waiting:
            raise BatchError(f"{waiting} batches wait already; send this one later", 429, 60)
        place.mkdir(parents=True, exist_ok=True)
        self.keep(job.id, Progress())
        # Last: a job is there once this is.
        write_atomically(place / "job.json", json.dumps(asdict(job)).encode())
        return job

    def ids(self) -> list[str]:
        """All jobs, in the order in which they came."""
        found = [path.parent.name for path in self._folder.glob("*/job.json")]
        return sorted(found, key=lambda job_id: (self.job(job_id).created, job_id))

    def job(self, job_id: str) -> Job:
        """Raises BatchError where there is none."""
        path = self.place(job_id) / "job.json"
        if not path.is_file():
            raise BatchError(f"no batch {job_id} is here; it may have been forgotten", 404)
        kept = json.loads(path.read_bytes())
        questions = tuple(Question(q["id"], q["body"], q["type"]) for q in kept["questions"])
        return Job(**{**kept, "questions": questions})

    def progress(self, job_id: str) -> Progress:
        return Progress(**json.loads((self.place(job_id) / "state.json").read_bytes()))

    def keep(self, job_id: str, progress: Progress) -> None:
        write_atomically(self.place(job_id) / "state.json", json.dumps(asdict(progress)).encode())

    def cancel(self, job_id: str) -> Progress:
        """Cancelled, unless it has ended already."""
        self.job(job_id)
        progress = self.progress(job_id)
        if progress.state not in ENDED:
            progress = replace(progress, state="cancelled", eta_s=None, ended=time.time())
            self.keep(job_id, progress)
        return progress

    def run_file(self, job_id: str) -> Path:
        return self.place(job_id) / "run.json"

    def run(self, job_id: str) -> bytes:
        """The finished run; raises BatchError where there is none yet."""
        self.job(job_id)
        state = self.progress(job_id).state
        if state != "done":
            raise BatchError(f"batch {job_id} is {state}, and has no run to give", 409)
        return self.run_file(job_id).read_bytes()

    def remove_expired(self) -> None:
        for job_id in self.ids():
            progress = self.progress(job_id)
            if progress.state in ENDED and time.time() - progress.ended > self._keep_s:
                shutil.rmtree(self.place(job_id))
