"""Batch jobs and their progress."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal

from cluster.answers import Question
from cluster.errors import RefusedError
from cluster.index.filters.filters import NO_FILTERS, Filters

JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
State = Literal["waiting", "running", "done", "cancelled", "failed"]
ENDED = ("done", "cancelled", "failed")
MAX_FAILED_SHOWN = 100
# Fields of a job that lists of jobs leave out.
HIDDEN = frozenset({"digest", "owner", "failed", "filters"})


class BatchError(RefusedError):
    """Request about a batch that cannot be fulfilled."""


@dataclass(frozen=True, slots=True)
class Job:
    """Batch job without its questions.

    `digest` is a SHA-256 of the owner, the options and the questions. `owner` is the name of the
    API key, "" if the server requires none. `created` is in seconds since 1970, 0 until the job is
    stored. `filters` restrict the citations of every question.
    """

    id: str
    system: str
    answers: bool
    total: int
    digest: str
    owner: str = ""
    created: float = 0.0
    filters: Filters = NO_FILTERS

    @property
    def key(self) -> str:
        """Return the name of the job among the jobs of all owners, which `key_of` defines."""
        return key_of(self.id, self.owner)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a job. Times are in seconds since 1970, 0 for not yet.

    `failed` maps the ids of failed questions to the reasons. `degraded` counts the answers with
    each loss, and `verdicts` those with each verdict. `index_version` is that of the first answer.
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
    """Return the unique name of a job in a store; jobs of different owners may share an id.

    The owner and the id are separated by a dot, which an id cannot contain. Raises BatchError if
    the id is invalid.
    """
    if not JOB_ID.fullmatch(job_id):
        raise BatchError(
            "id: must be 1 to 64 letters, digits, dashes and underscores, the first a letter"
            " or a digit",
            422,
        )
    return f"{owner}.{job_id}" if owner else job_id


def new_job(
    questions: Sequence[Question],
    system: str,
    answers: bool,
    job_id: str = "",
    owner: str = "",
    filters: Filters = NO_FILTERS,
) -> Job:
    """Return a job of the questions, with a random id if none is given."""
    asked = (owner, system, answers, [(q.id, q.body, q.type) for q in questions])
    # Older jobs have no filters, and their digest must not change.
    asked_with = (*asked, filters) if filters else asked
    digest = sha256(repr(asked_with).encode()).hexdigest()
    name, total = job_id or uuid.uuid4().hex, len(questions)
    return Job(name, system, answers, total, digest, owner, filters=filters)


def when(seconds: float) -> str | None:
    """Format a time in seconds since 1970 as ISO 8601 in UTC; None for 0."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None


def summarised(job: Job, progress: Progress) -> dict[str, Any]:
    """Return the job and its progress for a list of jobs, with the number of failures only."""
    fields = {**asdict(job), **asdict(progress), "failed_count": len(progress.failed)}
    for name in ("created", "started", "ended"):
        fields[name] = when(fields[name])
    return {name: value for name, value in fields.items() if name not in HIDDEN}


def described(job: Job, progress: Progress) -> dict[str, Any]:
    """Return the job and its progress with the first MAX_FAILED_SHOWN failed questions."""
    failed = list(progress.failed.items())[:MAX_FAILED_SHOWN]
    return {**summarised(job, progress), "failed": dict(failed)}
