"""Jobs on a Ray cluster, through its dashboard: submitted once by name, followed, stopped.

The job of a name is its newest attempt: NAME, then NAME-2, NAME-3 after one that failed
or was stopped. Every pipeline goes on where it stopped, so that an attempt repeats little.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
from ray.exceptions import AuthenticationError
from ray.job_submission import JobDetails, JobStatus, JobSubmissionClient

from cluster.errors import CiteRayError, InputError, cut

RETRY_S = 1.0
LOST_AFTER_S = 120.0
ENDED = {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED}
# Models and indexes; Ray itself leaves out .git, .venv and what .gitignore and .rayignore name.
STAYS_HERE = [".citeray"]


@dataclass(frozen=True)
class Head:
    """A cluster's dashboard; `say` tells the user a line."""

    address: str
    client: JobSubmissionClient
    say: Callable[[str], None]


@dataclass
class Log:
    """A job's log as far as it was shown, to go on there after a lost connection."""

    write: Callable[[str], Any]
    shown: int = field(default=0)

    def show(self, text: str, begin: int) -> int:
        """Writes what is new of `text`, which begins at that character; gives its end."""
        end = begin + len(text)
        if end > self.shown:
            self.write(text[max(0, self.shown - begin) :])
            self.shown = end
        return end


def connect(address: str, say: Callable[[str], None]) -> Head:
    """Raises InputError for what is no address, CiteRayError where no dashboard lets us in."""
    if not address.startswith(("http://", "https://")):
        raise InputError(
            f"{cut(address)}: not the address of a Ray dashboard; give it as "
            "--address http://HEAD:8265 or in RAY_API_SERVER_ADDRESS"
        )
    # Ray lets its environment override the address that it is given.
    os.environ["RAY_API_SERVER_ADDRESS"] = address
    with plain_errors(address):
        client = JobSubmissionClient(address)
    # It tells each file that stays here, and each connection's end.
    logging.getLogger("ray").setLevel(logging.ERROR)
    return Head(address, client, say)


@contextmanager
def plain_errors(address: str) -> Iterator[None]:
    """Ray's errors as one sentence; CiteRayError or InputError."""
    try:
        yield
    except AuthenticationError as error:
        raise CiteRayError(
            f"{address}: this Ray asks for a token, and the one given is missing or wrong; set "
            "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) to the cluster's"
        ) from error
    except OSError as error:
        raise CiteRayError(
            f"no Ray dashboard answers at {address} ({cut(str(error))}); check the address, and "
            "that the head runs and its port can be reached from here"
        ) from error
    except (RuntimeError, ValueError) as error:
        if "status code 413" in str(error) or "exceeds" in str(error):
            raise InputError(
                "the working directory is larger than the 100 MiB that Ray lets travel; name in "
                ".gitignore or .rayignore what need not, or give --no-working-dir where the "
                "image holds the code"
            ) from error
        raise CiteRayError(f"{address}: {cut(str(error))}") from error


def find(head: Head, job: str) -> JobDetails | None:
    """The job of that submission id; None where the cluster knows none."""
    try:
        return head.client.get_job_info(job)
    except RuntimeError as error:
        if "status code 404" in str(error):
            return None
        raise


def newest(head: Head, name: str) -> JobDetails:
    """The last attempt of that name; InputError where there is none."""
    with plain_errors(head.address):
        last = None
        for job in _attempts(name):
            if (details := find(head, job)) is None:
                break
            last = details
    if last is None:
        raise InputError(
            f"{head.address} knows no job {name}; `citeray job list` names those that it knows"
        )
    return last


def _attempts(name: str) -> Iterator[str]:
    return (name if n == 1 else f"{name}-{n}" for n in count(1))


def submit(head: Head, name: str, entrypoint: str, working_dir: Path | None) -> str:
    """The submission id of the attempt that runs, has succeeded, or is begun now.

    Raises InputError where the name is that of another command.
    """
    with plain_errors(head.address):
        for job in _attempts(name):
            known = find(head, job)
            if known is None and begin(head, job, entrypoint, working_dir):
                head.say(f"{job} is submitted to {head.address}")
                return job
            known = known or find(head, job)
            if known is None:
                raise RuntimeError(f"{job} was refused as known and is not known")
            if known.entrypoint != entrypoint:
                raise InputError(
                    f"{job} is another command there ({cut(known.entrypoint)}); give another --id"
                )
            if known.status not in {JobStatus.FAILED, JobStatus.STOPPED}:
                done = known.status == JobStatus.SUCCEEDED
                again = "has succeeded already; another --id runs it anew"
                head.say(f"{job} {again if done else 'runs already; following it'}")
                return job
            head.say(f"{job} {str(known.status).lower()}; the next attempt goes on from there")
    raise AssertionError("attempts have no end")


def begin(head: Head, job: str, entrypoint: str, working_dir: Path | None) -> bool:
    """Whether the job was begun; False where another submitter was first."""
    environment = {"working_dir": str(working_dir), "excludes": STAYS_HERE} if working_dir else {}
    try:
        head.client.submit_job(entrypoint=entrypoint, submission_id=job, runtime_env=environment)
    except RuntimeError as error:
        if "already exists" in str(error):
            return False
        raise
    return True


def follow(head: Head, job: str, log: Log) -> JobDetails:
    """Shows the log until the job has ended, connecting again where the connection is lost."""
    while True:
        try:
            asyncio.run(_tail(head, job, log))
        except (aiohttp.ClientError, RuntimeError, OSError) as error:
            head.say(f"{job}: its log broke off ({cut(str(error))}); asking for it again")
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
    """What the live log had not brought when the job ended."""
    try:
        log.show(head.client.get_job_logs(job), 0)
    except RuntimeError as error:
        head.say(f"{job}: the end of its log is lost with its node ({cut(str(error))})")


def await_answer(head: Head, job: str) -> JobDetails:
    """The job as the head knows it, waiting for a head that is away for a while."""
    begun = time.monotonic()
    told = False
    while True:
        try:
            details = find(head, job)
            break
        except (OSError, RuntimeError):
            if time.monotonic() - begun > LOST_AFTER_S:
                raise
            if not told:
                head.say(f"{head.address} does not answer; the job goes on, trying again")
            told = True
            time.sleep(RETRY_S)
    if details is None:
        raise CiteRayError(
            f"{job} was lost with its head, which has started anew; run the same command again: "
            "it goes on where it stopped"
        )
    return details


def stop(head: Head, job: str) -> None:
    """Asks the job to stop, until Ray takes the order or the job has ended."""
    with plain_errors(head.address):
        while not head.client.stop_job(job) and await_answer(head, job).status not in ENDED:
            time.sleep(RETRY_S)


def follow_or_stop(head: Head, job: str, log: Log) -> JobDetails:
    """`follow`, where Ctrl-C stops the job and a second one leaves it at once."""
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
            f"left before {job} had stopped; `citeray job follow {job}` shows what became of it"
        ) from None


def exit_code(job: JobDetails) -> int:
    """The command's own: 0 done, 1 failed or stopped, 2 wrong usage or bad input."""
    if job.status == JobStatus.SUCCEEDED:
        return 0
    return 2 if job.driver_exit_code == 2 else 1


def all_jobs(head: Head) -> list[JobDetails]:
    """The submitted jobs that the cluster knows, the oldest first."""
    with plain_errors(head.address):
        jobs = [job for job in head.client.list_jobs() if job.submission_id]
    return sorted(jobs, key=lambda job: job.start_time or 0)
