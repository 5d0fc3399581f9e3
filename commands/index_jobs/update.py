"""`citeray index update` and `citeray index compact`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from cluster.index.manifest import read_manifest
from cluster.ray.session import ray_session
from commands.context import Config, Json, Overrides, make_context
from commands.index_jobs.show_progress import reporter
from commands.index_jobs.show_result import print_published, print_result
from pipelines.indexing.shards.compact_shard import prune as prune_index
from pipelines.indexing.sources.find_sources import find_sources

AllowGap = Annotated[
    bool, typer.Option("--allow-gap", help="Accept gaps in the numbering of the files.")
]

Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a file with a record that cannot be read.")
]


def update(
    sources: Annotated[list[str], typer.Argument(help="PubMed XML files, folders or globs.")],
    each: Annotated[
        bool, typer.Option("--each", help="Publish one version per source, for --as-of.")
    ] = False,
    allow_gap: AllowGap = False,
    strict: Strict = False,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Add new sources to the index: revisions replace, deletions remove.

    Sources already in the index with the same content are skipped, so the whole download folder may
    be named. A source with a known name but different content is refused. NLM's numbered files are
    applied in numerical order; any other file counts as newer than the index. An interrupted update
    resumes when run again. A source that cannot be read blocks the sources after it, and the exit
    code is then 1. A single record that cannot be read is skipped and reported.
    """
    from pipelines.indexing.jobs import update_index

    context = make_context(config, overrides, json)
    settings = context.settings
    paths = find_sources(sources)
    begun = time.monotonic()
    with ray_session(settings.ray), reporter(context) as report:
        result = update_index(
            paths, settings, report, each=each, allow_gap=allow_gap, strict=strict
        )
    print_result(context, result, time.monotonic() - begun, json=json)
    if not result.sources:
        context.log.print(f"nothing new in {len(paths)} source files")
    if result.failed:
        first = result.failed[0].name
        context.log.print(
            f"{first} and what follows it are not in the index, since files apply in order; fix "
            "it and run the same command again; the other files are not read again",
        )
        raise typer.Exit(1)


def compact(
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Then remove all earlier versions and files that only they use."
        ),
    ] = False,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Merge the segments that updates added into one per shard; search results do not change.

    Earlier versions remain until --prune removes them; --as-of can then no longer show them. A
    service that still serves a removed version keeps its files open until it switches to the
    newest; after a restart it opens the newest.
    """
    from pipelines.indexing.jobs import compact_index

    context = make_context(config, overrides, json)
    index = context.settings.index.location
    before = read_manifest(index)
    begun = time.monotonic()
    manifest = before
    if any(len(shard.segments) > 1 for shard in before.shards):
        with ray_session(context.settings.ray), reporter(context) as report:
            manifest = compact_index(context.settings, report)
    else:
        context.log.print(f"{before.version} is already compact")
    seconds = time.monotonic() - begun
    removed = prune_index(index, manifest) if prune else []
    if json:
        counts = {"citations": manifest.citations, "segments": len(manifest.segments)}
        found = {"version": manifest.version, **counts, "seconds": round(seconds, 1)}
        context.print_json({**found, "removed": removed})
        return
    if manifest != before:
        print_published(context, manifest, seconds)
    if prune:
        context.out.print(f"removed {len(removed)} files and folders of earlier versions")
