"""What a batch job is, and how far it is."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal

from cluster.answers import Question
from cluster.errors import RefusedError

JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
State = Literal["waiting", "running", "done", "cancelled", "failed"]
ENDED = ("done", "cancelled", "failed")
MAX_FAILED_SHOWN = 100


class BatchError(RefusedError):
    """A request about a batch that cannot be met."""


@dataclass(frozen=True, slots=True)
class Job:
    """What was asked for, but for the questions; `digest` is of all but `id` and `created`.

    `owner` is the name of the key that it came with, "" where the server asks for none.
    `created` is seconds since 1970, 0 until a store has it.
    """

    id: str
    system: str
    answers: bool
    total: int
    digest: str
    owner: str = ""
    created: float = 0.0

    @property
    def key(self) -> str:
        """The job's name among those of all owners; see `key_of`."""
        return key_of(self.id, self.owner)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is, its times in seconds since 1970, 0 for not yet.

    `failed` has the questions that got no answer, with the reason; `degraded` counts the answers
    that bear each loss, and `verdicts` the answers by verdict; `index_version` is that of the
    first answer.
    """

    state: State = "waiting"
    done: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    degraded: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    index_version: str = ""
    error: str = ""
    eta_s: float | None = None
    started: float = 0.0
    ended: float = 0.0


def key_of(job_id: str, owner: str) -> str:
    """The name of an owner's job in a store: two owners may each have a job of the same id.

    Raises BatchError for what is no id, in which alone no dot can be.
    """
    if not JOB_ID.fullmatch(job_id):
        raise BatchError(
            "id: must be 1 to 64 letters, digits, dashes and underscores, the first a letter"
            " or a digit",
            422,
        )
    return f"{owner}.{job_id}" if owner else job_id


def new_job(
    questions: Sequence[Question], system: str, answers: bool, job_id: str = "", owner: str = ""
) -> Job:
    """A job under an id of its own, where none is given."""
    asked = (owner, system, answers, [(q.id, q.body, q.type) for q in questions])
    digest = sha256(repr(asked).encode()).hexdigest()
    return Job(job_id or uuid.uuid4().hex, system, answers, len(questions), digest, owner)


def when(seconds: float) -> str | None:
    """ISO 8601 in UTC, None for 0."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None


def summarised(job: Job, progress: Progress) -> dict[str, Any]:
    """The job as a list tells it: its figures."""
    return {
        "id": job.id,
        "system": job.system,
        "answers": job.answers,
        "state": progress.state,
        "total": job.total,
        "done": progress.done,
        "failed_count": len(progress.failed),
        "degraded": dict(progress.degraded),
        "verdicts": dict(progress.verdicts),
        "index_version": progress.index_version,
        "error": progress.error,
        "eta_s": progress.eta_s,
        "created": when(job.created),
        "started": when(progress.started),
        "ended": when(progress.ended),
    }


def described(job: Job, progress: Progress) -> dict[str, Any]:
    """The job as a reply tells it: its figures, and the first questions that failed."""
    failed = list(progress.failed.items())[:MAX_FAILED_SHOWN]
    return {**summarised(job, progress), "failed": dict(failed)}
