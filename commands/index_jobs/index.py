"""`citeray index`: build and info; registers the other index commands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cluster.errors import IndexFormatError
from cluster.index.layout import TOKENS
from cluster.index.manifest import Manifest, read_manifest
from cluster.index.versions import read_as_of
from cluster.models.adapters import full_name
from cluster.pubmed.source_order import check_gaps
from cluster.ray.session import ray_session
from cluster.settings.settings import Settings
from cluster.storage.object_store import File
from commands.context import Config, Context, Json, Overrides, make_context
from commands.index_jobs.show_progress import reporter
from commands.index_jobs.show_result import MOST_NAMED, print_result
from commands.index_jobs.update import AllowGap, Strict, compact, update
from commands.index_jobs.verify import verify
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.indexing.staging.plan_build import BuildResult

index = typer.Typer(
    help="Build, update and inspect the index.", no_args_is_help=True, add_completion=False
)
index.command("update")(update)
index.command("compact")(compact)
index.command("verify")(verify)


def build_on_ray(
    context: Context,
    settings: Settings,
    sources: list[File],
    *,
    strict: bool = False,
    again: bool = False,
) -> BuildResult:
    """Build an index from the sources, publish it at index.path and show progress."""
    from pipelines.indexing.jobs import build_index
    from pipelines.indexing.published_build import find_build

    # Without this check, Ray would start and fetch models before it finds that the index is already
    # built.
    found = None if again else find_build(sources, settings, strict=strict)
    if found:
        return found
    context.log.print(f"{len(sources)} source files -> {settings.index.path}")
    # Announce this late, because after the models are fetched, the build may turn out to be
    # published already.
    omitted = partial(_log_omitted, settings, sources)
    with ray_session(settings.ray), reporter(context, omitted) as report:
        return build_index(sources, settings, report, strict=strict, again=again)


@index.command("build")
def build(
    sources: Annotated[list[str], typer.Argument(help="PubMed XML files, folders or globs.")],
    allow_gap: AllowGap = False,
    strict: Strict = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Build even if the published version holds this build."),
    ] = False,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Build an index from PubMed XML and publish it at index.path.

    If the published version holds a build of the same sources with the same settings, and perhaps
    later updates, nothing is done.
    An interrupted build resumes when run again. If a file cannot be read, the whole file is left
    out and reported, and the exit code is 1. A single record that cannot be read is skipped and
    reported.
    """
    context = make_context(config, overrides, json)
    paths = find_sources(sources)
    if not allow_gap:
        check_gaps(path.name for path in paths)
    begun = time.monotonic()
    result = build_on_ray(context, context.settings, paths, strict=strict, again=again)
    print_result(context, result, time.monotonic() - begun, json=json)
    if result.failed:
        context.log.print(
            f"{len(result.failed)} of {len(result.sources)} files are not in the index; fix or "
            "remove them and run the same command again; the other files are not read again",
        )
        raise typer.Exit(1)


def _log_omitted(settings: Settings, paths: Sequence[File], log: Console) -> None:
    """Log the sources of the published version that this build does not include."""
    try:
        before = read_manifest(settings.index.location)
    except IndexFormatError:
        return
    given = {path.name for path in paths}
    if dropped := [source.name for source in before.sources if source.name not in given]:
        first = ", ".join(dropped[:MOST_NAMED])
        more = f" and {len(dropped) - MOST_NAMED:,} more" if len(dropped) > MOST_NAMED else ""
        log.print(
            f"this build replaces {before.version}, and leaves out its sources {first}{more}; "
            "to keep them, stop it and add the new files with `citeray index update`",
            soft_wrap=True,
        )


@index.command("info")
def info(
    as_of: Annotated[
        str | None,
        typer.Option(help="Show the state after this source, such as pubmed26n1340.xml.gz."),
    ] = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Show the contents of the published version at index.path, or of an earlier one.

    Each run of build or update creates one version (with --each, one per source). --as-of shows the
    newest version that ends with the given source or an earlier one.
    """
    context = make_context(config, overrides, json)
    location = context.settings.index.location
    manifest = read_as_of(location, as_of) if as_of else read_manifest(location)
    if json:
        context.print_json(manifest.model_dump())
        return
    size = sum(a.bytes for s in manifest.segments for a in s.artefacts.values())
    table = Table(show_header=False)
    encoder = manifest.encoder
    dtype = f", {encoder.dtype}" if encoder.dtype else ""
    for name, value in (
        ("version", manifest.version),
        ("created", manifest.created),
        ("citations", f"{manifest.citations:,}"),
        ("passages", f"{manifest.passages:,}"),
        ("superseded, deleted", f"{manifest.superseded:,}, {manifest.deleted:,}"),
        ("last source", manifest.last_source),
        ("failed sources", ", ".join(manifest.failed_sources) or "none"),
        ("encoder", f"{full_name(encoder)} ({encoder.dimensions} dimensions{dtype})"),
        ("split", f"{manifest.split.method} {manifest.split.size}/{manifest.split.overlap}"),
        ("vectors", manifest.vectors),
        ("token vectors", _token_vectors(manifest)),
        ("shards, segments", f"{len(manifest.shards)}, {len(manifest.segments)}"),
        ("earlier versions", ", ".join(e.version for e in manifest.history) or "none"),
        ("size", f"{size / 1e6:,.1f} MB"),
    ):
        table.add_row(name, value)
    context.out.print(table)
    context.out.print(_source_table(manifest))


def _token_vectors(manifest: Manifest) -> str:
    """Return the format of the stored token vectors and their bytes per passage."""
    codec = manifest.tokens
    if codec is None:
        return "none"
    size = sum(s.artefacts[TOKENS].bytes for s in manifest.segments)
    each = size / max(sum(s.passages for s in manifest.segments), 1)
    return f"{codec.components} components of {codec.bits} bits, {each:,.0f} bytes per passage"


def _source_table(manifest: Manifest) -> Table:
    table = Table("file", "read", "kept", "deletions", "dropped")
    for s in manifest.sources:
        dropped = ", ".join(f"{reason} {n}" for reason, n in sorted(s.dropped.items()))
        table.add_row(s.name, f"{s.read:,}", f"{s.kept:,}", f"{s.deletions:,}", dropped or "0")
    return table


def write_sample_corpus(
    folder: Annotated[Path, typer.Argument(help="Output folder; created if missing.")],
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
