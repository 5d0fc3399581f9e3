"""`citeray job`: run any citeray command as a job on a Ray cluster, once per job name."""

from __future__ import annotations

import json
import re
import shlex
import sys
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cluster.errors import InputError, cut, one_line
from cluster.ray.runtime_env import job_runtime_env
from commands.terminal import make_console, make_log_console

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
CONFIG = ("--config", "-c")

job = typer.Typer(
    help="Run commands as jobs on a Ray cluster.", no_args_is_help=True, add_completion=False
)

Address = Annotated[
    str,
    typer.Option(
        envvar=["RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"],
        help="URL of the Ray dashboard on the head node.",
    ),
]
WorkingDir = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER", help="Folder of code to upload (100 MiB at most), or URL of an archive."
    ),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY",
        help="Name of an environment variable to copy from this shell. Repeat for several.",
    ),
]
Name = Annotated[str, typer.Argument(metavar="ID", help="The job's name, as printed by submit.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document; the log goes to standard error.")
]
HERE = "http://127.0.0.1:8265"


@job.command("submit", context_settings={"allow_interspersed_args": False})
def submit_job(
    command: Annotated[list[str], typer.Argument(help="A citeray command and its options.")],
    name: Annotated[
        str, typer.Option("--id", help="The job's name (default: a digest of the command).")
    ] = "",
    address: Address = HERE,
    working_dir: WorkingDir = None,
    no_working_dir: Annotated[
        bool, typer.Option("--no-working-dir", help="Run the code in the container image.")
    ] = False,
    runtime_env: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ray's runtime environment of the job (YAML or JSON)."),
    ] = None,
    env: Env = None,
    detach: Annotated[bool, typer.Option(help="Submit the job without following its log.")] = False,
    json: Json = False,
) -> None:
    """Run a citeray command as a job. Submitting the same job again does not run it twice.

    If a job of this name is running, it is followed; if it succeeded, its log is shown; if it
    failed or was stopped, it is resumed. The log (output and messages, which Ray stores together)
    is printed to standard output, and the exit code is that of the command. Ctrl-C stops the job.
    Without --working-dir, the current folder is uploaded. Ray accepts at most 100 MiB, as a zip.

    If the cluster asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN. Example:

    citeray job submit --env HF_TOKEN -- index build s3://BUCKET/pubmed --config cluster.yaml
    """
    from cluster.ray import jobs

    words = command[1:] if command[0] == "citeray" else command
    if not words:
        raise InputError("no command to run; give one, such as -- index build SOURCE...")
    environment = job_runtime_env(runtime_env, "" if no_working_dir else working_dir, env or ())
    head = jobs.connect(address, _say)
    given = _checked(name) if name else name_of(words, runtime_env)
    began = jobs.submit(head, given, shlex.join(["citeray", *words]), environment)
    if detach:
        print(began)
        return
    follow_to_end(head, began, json=json)


@job.command("follow")
def follow_job(name: Name, address: Address = HERE, json: Json = False) -> None:
    """Show a job's log until it ends, and exit with its exit code. Ctrl-C stops the job."""
    from cluster.ray import jobs

    head = jobs.connect(address, _say)
    follow_to_end(head, _submission_id(jobs.newest(head, _checked(name))), json=json)


@job.command("cancel")
def cancel_job(name: Name, address: Address = HERE) -> None:
    """Stop a job and wait until it has ended. A job that has already ended is unchanged."""
    from cluster.ray import jobs

    head = jobs.connect(address, _say)
    found = _submission_id(jobs.newest(head, _checked(name)))
    jobs.stop(head, found)
    ended = jobs.follow(head, found, jobs.Log(lambda _: None))
    _say(f"{found} {str(ended.status).lower()}")


@job.command("list")
def list_jobs(address: Address = HERE, json: Json = False) -> None:
    """List the jobs that the cluster knows, oldest first."""
    from cluster.ray import jobs

    found = jobs.all_jobs(jobs.connect(address, _say))
    rows = [
        {
            "id": _submission_id(j),
            "status": str(j.status),
            "began": datetime.fromtimestamp((j.start_time or 0) / 1000, UTC).isoformat(
                "T", "seconds"
            ),
            "exit_code": jobs.exit_code(j) if j.status in jobs.ENDED else None,
            "command": j.entrypoint,
        }
        for j in found
    ]
    if json:
        _print_json(rows)
        return
    table = Table("id", "status", "began", "command")
    for row in rows:
        table.add_row(*(one_line(str(row[k])) for k in ("id", "status", "began", "command")))
    make_console().print(table)


def follow_to_end(head: Any, name: str, *, json: bool) -> None:
    """Follow a job until it ends; exit with its exit code if that is not 0."""
    from cluster.ray import jobs

    text: list[str] = []

    def write(part: str) -> None:
        text.append(part)
        print(part, end="", flush=True, file=sys.stderr if json else sys.stdout)

    ended = jobs.follow_or_stop(head, name, jobs.Log(write))
    code = jobs.exit_code(ended)
    said = cut((ended.message or "").partition("\n")[0])
    _say(f"{name} {str(ended.status).lower()}: {said}")
    if json:
        result = last_document("".join(text))
        status = str(ended.status)
        _print_json({"id": name, "status": status, "exit_code": code, "result": result})
    if code:
        raise typer.Exit(code)


def last_document(log: str) -> Any:
    """Return the JSON document that a command printed to its log with --json, or None."""
    for line in reversed(log.splitlines()):
        if line.startswith(("{", "[")):
            try:
                return json.loads(line)
            except ValueError:
                continue
    return None


def name_of(words: list[str], runtime_env: Path | None = None) -> str:
    """Return a readable job name that depends on the command and the files that it reads.

    These are its settings file and the file of the runtime environment.
    """
    digest = blake2b(shlex.join(words).encode(), digest_size=6)
    named = [Path(value) for option, value in pairwise(words) if option in CONFIG]
    for file in (*named, *([runtime_env] if runtime_env else ())):
        if file.is_file():
            digest.update(file.read_bytes())
    verbs = [word for word in words[:2] if re.fullmatch("[a-z]+", word)]
    return "-".join(["citeray", *verbs, digest.hexdigest()])


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InputError(
            f"{cut(name)}: not a job's id; it has at most 100 letters, digits, '.', '_' and '-'"
        )
    return name


def _submission_id(found: Any) -> str:
    return str(found.submission_id)


def _say(line: str) -> None:
    make_log_console().print(one_line(line))


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))
