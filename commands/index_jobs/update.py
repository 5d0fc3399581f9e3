"""`citeray index update` and `citeray index compact`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from cluster.index.manifest import read_manifest
from cluster.ray.session import ray_session
from commands.context import Config, Json, Overrides, make_context
from commands.index_jobs.show_progress import reporter
from commands.index_jobs.show_result import tell, tell_version
from pipelines.build.find_sources import find_sources
from pipelines.update.compact_index import prune as prune_index

AllowGap = Annotated[
    bool, typer.Option("--allow-gap", help="Accept missing numbers among the files.")
]

Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a file with a record that cannot be read.")
]


def update(
    sources: Annotated[list[str], typer.Argument(help="PubMed XML files, folders or globs.")],
    each: Annotated[
        bool, typer.Option("--each", help="Publish a version for every source, for --as-of.")
    ] = False,
    allow_gap: AllowGap = False,
    strict: Strict = False,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Add new sources to the index: revisions replace, deletions remove.

    Sources that the index holds with the same content are skipped, so the whole download folder
    may be named; one with the same name and other content is refused. NLM's numbered files apply
    in the order of their numbers; any other file counts as newer than what the index holds. Run
    again after an interruption, it goes on where it stopped. A source that cannot be read
    holds up those after it; the exit code is then 1. A single record that cannot be read is
    set aside and named.
    """
    from pipelines.build.jobs import update_index

    context = make_context(config, overrides, json)
    settings = context.settings
    paths = find_sources(sources)
    begun = time.monotonic()
    with ray_session(settings.ray), reporter(context) as report:
        result = update_index(
            paths, settings, report, each=each, allow_gap=allow_gap, strict=strict
        )
    tell(context, result, time.monotonic() - begun, json=json)
    if not result.sources:
        context.log.print(f"nothing new in {len(paths)} source files")
    if result.failed:
        first = result.failed[0].name
        context.log.print(
            f"{first} and what follows it are not in the index, since files apply in order; mend "
            "it and run the same command again: the others are not read again",
        )
        raise typer.Exit(1)


def compact(
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Then remove all earlier versions and what only they need."),
    ] = False,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Fold the segments that updates added into one a shard; searches give the same.

    Earlier versions stay until --prune removes them: from then on --as-of cannot show
    them. A service that still serves one has its files open and keeps them until it
    follows; restarted, it opens the newest.
    """
    from pipelines.build.jobs import compact_index

    context = make_context(config, overrides, json)
    index = context.settings.index.place
    before = read_manifest(index)
    begun = time.monotonic()
    manifest = before
    if any(len(shard.segments) > 1 for shard in before.shards):
        with ray_session(context.settings.ray), reporter(context) as report:
            manifest = compact_index(context.settings, report)
    else:
        context.log.print(f"{before.version} is compact already")
    seconds = time.monotonic() - begun
    removed = prune_index(index, manifest) if prune else []
    if json:
        counts = {"citations": manifest.citations, "segments": len(manifest.segments)}
        found = {"version": manifest.version, **counts, "seconds": round(seconds, 1)}
        context.print_json({**found, "removed": removed})
        return
    if manifest != before:
        tell_version(context, manifest, seconds)
    if prune:
        context.out.print(f"removed {len(removed)} files and folders of earlier versions")
