"""Output of a build or update: a table of its sources, and the published version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from cluster.index.manifest import Manifest
from commands.context import Context
from pipelines.indexing.staging.plan_build import BuildResult

# Maximum number of skipped sources that are listed by name; the JSON output lists all.
MOST_NAMED = 10


def print_result(context: Context, result: BuildResult, seconds: float, *, json: bool) -> None:
    """Print the sources and the published version, and log problems."""
    if json:
        context.print_json(_summary(result, seconds))
    elif result.sources:
        context.out.print(_table(result.sources))
        for source in result.sources:
            for example in source.examples:
                context.log.print(f"dropped: {example}")
        if result.manifest:
            print_published(context, result.manifest, seconds)
    for note in result.notes:
        context.log.print(note, soft_wrap=True)
    _log_held(context, result.held)
    _log_damaged(context, result)
    for source in result.failed:
        context.log.print(f"failed: {source.error}", style="red")


def _log_held(context: Context, held: Sequence[str]) -> None:
    """Log the sources that were already in the index with the same content."""
    if held:
        first = ", ".join(held[:MOST_NAMED])
        more = f" and {len(held) - MOST_NAMED:,} more" if len(held) > MOST_NAMED else ""
        context.log.print(
            f"already in the index with the same content: {first}{more}", soft_wrap=True
        )


def _log_damaged(context: Context, result: BuildResult) -> None:
    for place in result.damaged:
        context.log.print(f"set aside: {place}", style="red")
    if result.damaged:
        context.log.print(
            f"records that could not be read and are not in the index: {len(result.damaged)}; if "
            "they are intact in NLM's files, download the files again and rebuild the index",
        )


def print_published(context: Context, manifest: Manifest, seconds: float) -> None:
    """Print one line about the new version, with its counts and the elapsed seconds."""
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


def _summary(result: BuildResult, seconds: float) -> dict[str, Any]:
    manifest = result.manifest
    return {
        "version": manifest.version if manifest else None,
        "last_source": manifest.last_source if manifest else None,
        "citations": manifest.citations if manifest else 0,
        "passages": manifest.passages if manifest else 0,
        "superseded": manifest.superseded if manifest else 0,
        "deleted": manifest.deleted if manifest else 0,
        "seconds": round(seconds, 1),
        "sources": [s.model_dump() for s in result.sources],
        "held": list(result.held),
        "notes": list(result.notes),
    }
