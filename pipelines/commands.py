"""`citeray index build` and `citeray index info`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cluster.cli import Config, Context, Json, Overrides, make_context
from cluster.index.manifest import Manifest, read_manifest
from cluster.session import ray_session
from pipelines.download_command import download
from pipelines.find_sources import find_sources

index = typer.Typer(help="Build and inspect the index.", no_args_is_help=True)
LINE_EVERY_S = 5.0
STAGES = {"models": "fetching models", "embed": "embedding", "index": "building shards"}


def register(app: typer.Typer) -> None:
    app.add_typer(index, name="index")
    app.command("download")(download)
    app.command("sample")(write_sample_corpus)


def _bars(context: Context) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeRemainingColumn(),
        console=context.log,
    )


class _Lines:
    """Progress where there is no terminal: a line when a stage begins, ends, and between."""

    def __init__(self, context: Context) -> None:
        self._log = context.log
        self._begun: dict[str, float] = {}
        self._last = 0.0

    def show(self, event: Any) -> None:
        now = time.monotonic()
        begun = self._begun.setdefault(event.stage, now)
        finished = event.done >= event.total
        if not finished and now - self._last < LINE_EVERY_S:
            return
        self._last = now
        spent = now - begun
        left = ""
        if event.done and not finished and spent > 0:
            left = f", about {spent / event.done * (event.total - event.done):.0f} s left"
        name = STAGES[event.stage]
        self._log.print(f"{name}: {event.done:,} of {event.total:,} {event.unit}{left}")


@contextmanager
def _reporter(context: Context) -> Iterator[Any]:
    if not sys.stderr.isatty():
        yield _Lines(context).show
        return
    with _bars(context) as bars:
        tasks: dict[str, Any] = {}

        def show(event: Any) -> None:
            if event.stage not in tasks:
                tasks[event.stage] = bars.add_task(STAGES[event.stage], unit=event.unit)
            bars.update(tasks[event.stage], completed=event.done, total=event.total)

        yield show


@index.command("build")
def build(
    sources: Annotated[list[str], typer.Argument(help="PubMed XML files, folders or globs.")],
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Build an index from PubMed XML and publish it at index.path.

    Run again after an interruption, it goes on where it stopped. Files that cannot be
    read are left out whole and named; the exit code is then 1.
    """
    from pipelines.jobs import build_index

    context = make_context(config, overrides, json)
    settings = context.settings
    paths = find_sources(sources)
    context.log.print(f"{len(paths)} source files -> {settings.index.path}", soft_wrap=True)
    begun = time.monotonic()
    with ray_session(settings.ray), _reporter(context) as report:
        result = build_index(paths, settings, report)
    seconds = time.monotonic() - begun
    if json:
        context.print_json(_summary(result, seconds))
    else:
        context.out.print(_table(result.sources))
        for source in result.sources:
            for example in source.examples:
                context.log.print(f"dropped: {example}", soft_wrap=True, markup=False)
        _print_outcome(context, result.manifest, seconds)
    for source in result.failed:
        context.log.print(f"failed: {source.error}", style="red", soft_wrap=True, markup=False)
    if result.failed:
        context.log.print(
            f"{len(result.failed)} of {len(result.sources)} files are not in the index; mend or "
            "remove them and run the same command again: the others are not read again",
            soft_wrap=True,
        )
        raise typer.Exit(1)


def _print_outcome(context: Context, manifest: Manifest | None, seconds: float) -> None:
    if manifest is None:
        return
    context.out.print(
        f"published {manifest.version}: {manifest.citations:,} citations, "
        f"{manifest.passages:,} passages, {len(manifest.shards)} shards, {seconds:.0f} s "
        f"({manifest.superseded} superseded, {manifest.deleted} deleted)",
        soft_wrap=True,
    )


def _table(sources: Any) -> Table:
    reasons = sorted({reason for s in sources for reason in s.dropped})
    table = Table("file", *("read", "kept", "deletions"), *(f"dropped: {r}" for r in reasons))
    for s in sources:
        if s.error:
            table.add_row(s.name, "failed", *[""] * (2 + len(reasons)), style="red")
            continue
        counts = [s.read, s.kept, s.deletions, *(s.dropped.get(r, 0) for r in reasons)]
        table.add_row(s.name, *(f"{c:,}" for c in counts))
    return table


def _summary(result: Any, seconds: float) -> dict[str, Any]:
    manifest = result.manifest
    return {
        "version": manifest.version if manifest else None,
        "citations": manifest.citations if manifest else 0,
        "passages": manifest.passages if manifest else 0,
        "superseded": manifest.superseded if manifest else 0,
        "deleted": manifest.deleted if manifest else 0,
        "seconds": round(seconds, 1),
        "sources": [s.model_dump() for s in result.sources],
    }


@index.command("info")
def info(config: Config = None, overrides: Overrides = None, json: Json = False) -> None:
    """What the published version at index.path holds."""
    context = make_context(config, overrides, json)
    manifest = read_manifest(context.settings.index.path.resolve())
    if json:
        context.print_json(manifest.model_dump())
        return
    size = sum(a.bytes for sh in manifest.shards for s in sh.segments for a in s.artefacts.values())
    table = Table(show_header=False)
    for name, value in (
        ("version", manifest.version),
        ("created", manifest.created),
        ("citations", f"{manifest.citations:,}"),
        ("passages", f"{manifest.passages:,}"),
        ("superseded, deleted", f"{manifest.superseded:,}, {manifest.deleted:,}"),
        ("last source", manifest.last_source),
        ("failed sources", ", ".join(manifest.failed_sources) or "none"),
        ("encoder", f"{manifest.encoder.model} ({manifest.encoder.dimensions} dimensions)"),
        ("split", f"{manifest.split.method} {manifest.split.size}/{manifest.split.overlap}"),
        ("vectors", manifest.vectors),
        ("shards", str(len(manifest.shards))),
        ("size", f"{size / 1e6:,.1f} MB"),
    ):
        table.add_row(name, value)
    context.out.print(table)
    context.out.print(_source_table(manifest))


def _source_table(manifest: Manifest) -> Table:
    table = Table("file", "read", "kept", "deletions", "dropped")
    for s in manifest.sources:
        dropped = ", ".join(f"{reason} {n}" for reason, n in sorted(s.dropped.items()))
        table.add_row(s.name, f"{s.read:,}", f"{s.kept:,}", f"{s.deletions:,}", dropped or "0")
    return table


def write_sample_corpus(
    folder: Annotated[Path, typer.Argument(help="Where to write it; made if absent.")],
    json: Json = False,
) -> None:
    """Write the sample corpus: illustrative citations in PubMed XML, and forty questions."""
    from pipelines.sample.write_sample import write_sample

    context = make_context(None, None, json)
    sample = write_sample(folder)
    if json:
        files = [str(p) for p in sample.sources]
        context.print_json({"sources": files, "questions": str(sample.questions)})
        return
    for path in (*sample.sources, sample.questions):
        context.out.print(str(path), soft_wrap=True)
