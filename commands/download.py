"""`citeray download`: mirror PubMed's baseline and update files from NCBI's server."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from cluster.errors import InputError, without_credentials
from commands.context import Config, Context, Json, Overrides, make_context
from commands.terminal import make_text_column

if TYPE_CHECKING:
    from pipelines.download.download_files import Observer, Outcome

BASE_URL = "https://ftp.ncbi.nlm.nih.gov/pubmed/"
DESTINATION = ".citeray/pubmed"
LINE_EVERY_S = 5.0

Destination = Annotated[
    str, typer.Argument(help="A folder or a URL, such as s3://bucket/prefix or gs://bucket/prefix.")
]
Baseline = Annotated[
    bool | None,
    typer.Option(
        "--baseline/--no-baseline",
        help="Download the annual baseline (default: yes, unless --since is given).",
    ),
]
Since = Annotated[
    int | None, typer.Option(min=0, help="Download only update files with a number above this one.")
]
Files = Annotated[int | None, typer.Option(min=1, help="Download only the first N files.")]
Query = Annotated[
    str | None,
    typer.Option(help="Download the records that match this PubMed query, instead of files."),
]


def download(
    destination: Destination = DESTINATION,
    baseline: Baseline = None,
    updates: Annotated[bool, typer.Option(help="Download the daily update files.")] = True,
    since: Since = None,
    files: Files = None,
    base_url: Annotated[
        str, typer.Option(help="URL of the folder with baseline/ and updatefiles/.")
    ] = BASE_URL,
    concurrent: Annotated[
        int, typer.Option(min=1, max=16, help="Number of files downloaded at once.")
    ] = 4,
    tries: Annotated[int, typer.Option(min=1, max=20, help="Attempts per request.")] = 6,
    query: Query = None,
    limit: Annotated[
        int, typer.Option(min=0, help="With --query: maximum number of records; 0 means all.")
    ] = 0,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Download PubMed files and check each against its md5; run again to fetch missing files.

    An interrupted download resumes. If a file cannot be downloaded, it is reported and the exit
    code is 1. With --query the records come from NCBI's E-utilities, configured by the entrez
    settings, as files that `index build` accepts.
    """
    if query is not None:
        _download_query(make_context(config, overrides, json), query, destination, limit)
        return
    from pipelines.download.download_files import download_files
    from pipelines.download.fetch_file import Patience, Web
    from pipelines.download.list_files import list_files

    if not base_url.startswith(("http://", "https://")):
        raise InputError(f"--base-url {base_url}: it must begin with http:// or https://")
    context = make_context(None, None, json)
    begun = time.monotonic()
    with _observer(context) as observer, Web(Patience(tries), observer.note) as web:
        wanted = list_files(
            web.read_text,
            base_url,
            baseline=since is None if baseline is None else baseline,
            updates=updates,
            since=since or 0,
            limit=files,
        )
        observer.note(f"{len(wanted):,} files at {without_credentials(base_url)} -> {destination}")
        outcomes = download_files(wanted, destination, web, observer, concurrent)
    _report(context, destination, outcomes, time.monotonic() - begun)


def _download_query(context: Context, query: str, destination: str, limit: int) -> None:
    import asyncio

    from cluster.entrez.search_pubmed import PubMed
    from pipelines.download.download_query import download_query

    if "://" in destination or destination == DESTINATION:
        raise InputError(
            f"{destination}: the records of a query need a local folder of their own; give one"
        )
    pubmed, tell = PubMed(context.settings.entrez), context.log.print
    done = asyncio.run(download_query(pubmed, query, Path(destination), tell, limit=limit))
    if context.json:
        context.print_json(asdict(done))
        return
    lost = f", {done.missing:,} without a citation in PubMed" if done.missing else ""
    context.out.print(
        f"{destination}: {done.records:,} records fetched{lost}; files: "
        f"{len(done.files) - done.present} written, {done.present} there already",
        soft_wrap=True,
    )


def _report(
    context: Context, destination: str, outcomes: Sequence[Outcome], seconds: float
) -> None:
    states = [o.state for o in outcomes]
    fetched, present = states.count("fetched"), states.count("present")
    failed = [o for o in outcomes if o.error]
    size = sum(o.bytes for o in outcomes)
    if context.json:
        summary = {"destination": destination, "bytes": size, "seconds": round(seconds, 1)}
        context.print_json(summary | {"files": [asdict(o) for o in outcomes]})
    else:
        context.out.print(
            f"{destination}: {fetched:,} files fetched ({size / 1e6:,.1f} MB, {seconds:.0f} s), "
            f"{present:,} there already, {len(failed):,} failed",
            soft_wrap=True,
        )
    for outcome in failed:
        context.log.print(f"failed: {outcome.error}", style="red")
    if failed:
        context.log.print(
            f"{len(failed)} of {len(outcomes)} files are not there; run the same command again: "
            "only these are fetched",
        )
        raise typer.Exit(1)


@contextmanager
def _observer(context: Context) -> Iterator[Observer]:
    if not sys.stderr.isatty():
        yield _Lines(context)
        return
    columns: tuple[Any, ...] = (
        make_text_column("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=context.log) as bars:
        yield _Bars(bars)


class _Bars:
    """Progress bars: one for each active file, and one for the total."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._lock = threading.Lock()
        self._done: dict[str, int] = {}
        self._tasks: dict[str, TaskID] = {}
        self._all = bars.add_task("comparing", total=None)

    def checked(self, done: int, total: int) -> None:
        self._bars.update(self._all, description=f"comparing {done:,} of {total:,} files")

    def planned(self, files: int, total: int) -> None:
        self._bars.update(self._all, description=f"{files:,} files", total=total, completed=0)

    def moved(self, name: str, done: int, total: int | None) -> None:
        with self._lock:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name)
            self._bars.update(self._tasks[name], completed=done, total=total)
            self._done[name] = done
            self._bars.update(self._all, completed=sum(self._done.values()))

    def finished(self, outcome: Outcome) -> None:
        with self._lock:
            if task := self._tasks.pop(outcome.name, None):
                self._bars.remove_task(task)

    def note(self, text: str) -> None:
        self._bars.console.print(text)


class _Lines:
    """Progress without a terminal: a line for each file, and a line every few seconds."""

    def __init__(self, context: Context) -> None:
        self._log = context.log
        self._lock = threading.Lock()
        self._done: dict[str, int] = {}
        self._total = 0
        self._last = time.monotonic()

    def _due(self) -> bool:
        now = time.monotonic()
        if now - self._last < LINE_EVERY_S:
            return False
        self._last = now
        return True

    def checked(self, done: int, total: int) -> None:
        if self._due():
            self.note(f"comparing: {done:,} of {total:,} files")

    def planned(self, files: int, total: int) -> None:
        self._total = total
        self.note(f"{files:,} files to fetch, {total / 1e6:,.1f} MB")

    def moved(self, name: str, done: int, total: int | None) -> None:
        with self._lock:
            self._done[name] = done
            if self._due():
                received = sum(self._done.values())
                self.note(f"fetching: {received / 1e6:,.1f} of {self._total / 1e6:,.1f} MB")

    def finished(self, outcome: Outcome) -> None:
        if not outcome.error:
            self.note(f"{outcome.name}: {outcome.bytes / 1e6:,.1f} MB")

    def note(self, text: str) -> None:
        self._log.print(text)
