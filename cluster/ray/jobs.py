"""Submits, follows and stops named jobs on a Ray cluster through its dashboard.

The attempts at a job have the submission ids NAME, NAME-2, NAME-3 and so on. A new attempt starts
only after one that failed or was stopped, and resumes where that one stopped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import aiohttp
from ray.exceptions import AuthenticationError
from ray.job_submission import JobDetails, JobStatus, JobSubmissionClient

from cluster.errors import CiteRayError, InputError, cut

RETRY_S = 1.0
LOST_AFTER_S = 120.0
ENDED = {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED}


@dataclass(frozen=True)
class Head:
    """A cluster's dashboard; `say` shows a line to the user."""

    address: str
    client: JobSubmissionClient
    say: Callable[[str], None]


@dataclass
class Log:
    """Position up to which a job's log was shown, to resume there after a lost connection."""

    write: Callable[[str], Any]
    shown: int = field(default=0)

    def show(self, text: str, begin: int) -> int:
        """Write the new part of `text`, which starts at character `begin`; return its end."""
        end = begin + len(text)
        if end > self.shown:
            self.write(text[max(0, self.shown - begin) :])
            self.shown = end
        return end


def connect(address: str, say: Callable[[str], None]) -> Head:
    """Connect to a dashboard.

    Raises InputError for an invalid address, and CiteRayError if access fails or is refused.
    """
    if not address.startswith(("http://", "https://")):
        raise InputError(
            f"{cut(address)}: not the address of a Ray dashboard; give it as "
            "--address http://HEAD:8265 or in RAY_API_SERVER_ADDRESS"
        )
    # In Ray, this environment variable overrides the address that is passed.
    os.environ["RAY_API_SERVER_ADDRESS"] = address
    with plain_errors(address):
        client = JobSubmissionClient(address)
    # Ray logs each excluded file and the end of each connection.
    logging.getLogger("ray").setLevel(logging.ERROR)
    return Head(address, client, say)


@contextmanager
def plain_errors(address: str) -> Iterator[None]:
    """Convert Ray's errors to a CiteRayError or InputError with a short message."""
    try:
        yield
    except AuthenticationError as error:
        raise CiteRayError(
            f"{address}: this Ray cluster requires a token, which is missing or wrong; set "
            "RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH to the cluster's token"
        ) from error
    except OSError as error:
        raise CiteRayError(
            f"no Ray dashboard answers at {address} ({cut(str(error))}); check the address, and "
            "that the head is running and its port is reachable from here"
        ) from error
    except (RuntimeError, ValueError) as error:
        if "status code 413" in str(error) or "exceeds" in str(error):
            raise InputError(
                "the working directory exceeds Ray's upload limit of 100 MiB; exclude files in "
                ".gitignore or .rayignore, or give --no-working-dir if the image contains "
                "the code"
            ) from error
        raise CiteRayError(f"{address}: {cut(str(error))}") from error


def find(head: Head, job: str) -> JobDetails | None:
    """Return the job with this submission id, or None if the cluster does not know it."""
    try:
        return head.client.get_job_info(job)
    except RuntimeError as error:
        if "status code 404" in str(error):
            return None
        raise


def newest(head: Head, name: str) -> JobDetails:
    """Return the newest attempt of this name. Raises InputError if there is none."""
    with plain_errors(head.address):
        last = None
        for job in _attempts(name):
            if (details := find(head, job)) is None:
                break
            last = details
    if last is None:
        raise InputError(
            f"{head.address} has no job {name}; `citeray job list` lists the known jobs"
        )
    return last


def _attempts(name: str) -> Iterator[str]:
    return (name if n == 1 else f"{name}-{n}" for n in count(1))


def submit(head: Head, name: str, entrypoint: str, runtime_env: Mapping[str, Any]) -> str:
    """Return the id of the attempt that runs or has succeeded, or else submit a new attempt.

    Raises InputError if the name is already used for another command.
    """
    with plain_errors(head.address):
        for job in _attempts(name):
            known = find(head, job)
            if known is None and begin(head, job, entrypoint, runtime_env):
                head.say(f"{job} was submitted to {head.address}")
                return job
            known = known or find(head, job)
            if known is None:
                raise RuntimeError(f"Ray refused {job} as a duplicate, but does not know it")
            if known.entrypoint != entrypoint:
                raise InputError(
                    f"{job} has a different command there ({cut(known.entrypoint)}); "
                    "give another --id"
                )
            if known.status not in {JobStatus.FAILED, JobStatus.STOPPED}:
                done = known.status == JobStatus.SUCCEEDED
                again = "has succeeded already; use another --id to run it again"
                head.say(f"{job} {again if done else 'is already running; following it'}")
                return job
            head.say(f"{job} {str(known.status).lower()}; the next attempt goes on from there")
    raise AssertionError("unreachable: the sequence of attempts is infinite")


def begin(head: Head, job: str, entrypoint: str, runtime_env: Mapping[str, Any]) -> bool:
    """Submit the job. Return False if another submitter was first."""
    try:
        head.client.submit_job(
            entrypoint=entrypoint, submission_id=job, runtime_env=dict(runtime_env)
        )
    except RuntimeError as error:
        if "already exists" in str(error):
            return False
        raise
    return True


def follow(head: Head, job: str, log: Log) -> JobDetails:
    """Show the log until the job has ended, and reconnect if the connection is lost."""
    while True:
        try:
            asyncio.run(_tail(head, job, log))
        except (aiohttp.ClientError, RuntimeError, OSError) as error:
            head.say(f"{job}: lost the connection to its log ({cut(str(error))}); reconnecting")
        with plain_errors(head.address):
            details = await_answer(head, job)
            if details.status in ENDED:
                show_rest(head, job, log)
                return details
        time.sleep(RETRY_S)


async def _tail(head: Head, job: str, log: Log) -> None:
    begin = 0
    async for text in head.client.tail_job_logs(job):
        begin = log.show(text, begin)


def show_rest(head: Head, job: str, log: Log) -> None:
    """Show the rest of the log that the live log had not delivered when the job ended."""
    try:
        log.show(head.client.get_job_logs(job), 0)
    except RuntimeError as error:
        head.say(f"{job}: the end of its log was lost with its node ({cut(str(error))})")


def await_answer(head: Head, job: str) -> JobDetails:
    """Return the job's state from the head, and wait if the head is temporarily unavailable."""
    begun = time.monotonic()
    reported = False
    while True:
        try:
            details = find(head, job)
            break
        except (OSError, RuntimeError):
            if time.monotonic() - begun > LOST_AFTER_S:
                raise
            if not reported:
                head.say(f"{head.address} does not answer; the job continues, retrying")
            reported = True
            time.sleep(RETRY_S)
    if details is None:
        raise CiteRayError(
            f"{job} was lost when its head restarted; run the same command again: "
            "it resumes where it stopped"
        )
    return details


def stop(head: Head, job: str) -> None:
    """Request that the job stops, until Ray accepts the request or the job has ended."""
    with plain_errors(head.address):
        while not head.client.stop_job(job) and await_answer(head, job).status not in ENDED:
            time.sleep(RETRY_S)


def follow_or_stop(head: Head, job: str, log: Log) -> JobDetails:
    """Follow the job; Ctrl-C stops it, and a second Ctrl-C leaves at once."""
    try:
        return follow(head, job, log)
    except KeyboardInterrupt:
        pass
    head.say(f"asking {job} to stop; Ctrl-C again leaves at once")
    try:
        stop(head, job)
        return follow(head, job, log)
    except KeyboardInterrupt:
        raise CiteRayError(
            f"left before {job} had stopped; `citeray job follow {job}` shows how it ends"
        ) from None


def exit_code(job: JobDetails) -> int:
    """Return the command's exit code: 0 success, 1 failed or stopped, 2 usage or input error."""
    if job.status == JobStatus.SUCCEEDED:
        return 0
    return 2 if job.driver_exit_code == 2 else 1


def all_jobs(head: Head) -> list[JobDetails]:
    """Return the submitted jobs that the cluster knows, oldest first."""
    with plain_errors(head.address):
        jobs = [job for job in head.client.list_jobs() if job.submission_id]
    return sorted(jobs, key=lambda job: job.start_time or 0)
