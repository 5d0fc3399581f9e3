"""`citeray index verify`: check the published version for errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID

from cluster.ray.session import ray_session
from cluster.settings.settings import Settings
from commands.context import Config, Context, Json, Overrides, make_context
from commands.terminal import make_text_column
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.verify.verify_index import (
    MapInOrder,
    Report,
    Verification,
    in_processes,
    usable_cpus,
    verify_index,
)


def verify(
    sources: Annotated[
        list[str] | None,
        typer.Option(help="PubMed XML file, folder or glob to compare the index with. Repeatable."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not check the bytes and texts of the artefacts.")
    ] = False,
    allow_gap: Annotated[
        bool, typer.Option("--allow-gap", help="Accept gaps in the numbering of the source files.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=4096, help="Number of parallel checks (default: one per CPU)."),
    ] = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Verify the published version; the exit code is 1 if anything is wrong.

    Checks the checksum of every file, all counts, and that each citation is in the postings,
    vectors and passages. With --sources it also checks that the index matches the source files: no
    PMID is missing, extra or stale. Leftovers of interrupted builds are reported but are not
    errors. On a Ray cluster (RAY_ADDRESS), its nodes check the shards.
    """
    context = make_context(config, overrides, json)
    settings = context.settings
    index = settings.index.location
    files = find_sources(sources) if sources else []
    columns = (make_text_column("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        _parallel(settings, jobs) as map_in_order,
        Progress(*columns, console=context.log, disable=not sys.stderr.isatty()) as bars,
    ):
        found = verify_index(
            index,
            files,
            quick=quick,
            allow_gap=allow_gap,
            map_in_order=map_in_order,
            report=_reporter(bars),
        )
    if json:
        context.print_json({**asdict(found), "clean": not found.findings})
    else:
        _print(context, found)
    raise typer.Exit(1 if found.findings else 0)


@contextmanager
def _parallel(settings: Settings, jobs: int | None) -> Iterator[MapInOrder]:
    """Yield a map that runs as tasks of the Ray cluster in RAY_ADDRESS, or in processes here."""
    if not os.environ.get("RAY_ADDRESS"):
        yield in_processes(jobs or usable_cpus())
        return
    from cluster.ray.map_tasks import map_tasks

    with ray_session(settings.ray):
        yield partial(map_tasks, at_once=jobs)


def _reporter(bars: Progress) -> Report:
    tasks: dict[str, TaskID] = {}

    def show(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(f"checking {stage}")
        bars.update(tasks[stage], completed=done, total=total)

    return show


def _print(context: Context, found: Verification) -> None:
    for finding in found.findings:
        line = f"{finding.kind}: {finding}"
        context.out.print(line, soft_wrap=True, highlight=False)
    for leftover in found.leftovers:
        context.log.print(f"leftover: {leftover}")
    what = f"{found.citations:,} citations, {found.passages:,} passages"
    census = f", census of {found.sources:,} source files" if found.sources else ""
    context.log.print(
        f"{found.version or 'no version'}: {what} live{census}: "
        f"{len(found.findings)} findings, {len(found.leftovers)} leftovers",
    )
    if found.findings:
        context.log.print(
            "the same `citeray index build` would keep this index, because it is published; add "
            "--again to replace it"
        )
