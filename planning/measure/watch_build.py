"""Measure a real build: seconds by phase, bytes by artefact, peak memory by process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from cluster.errors import CiteRayError
from cluster.index.manifest import Manifest
from cluster.ray.session import ray_session
from cluster.settings.settings import Settings
from cluster.storage.locations import Location, list_files
from cluster.storage.object_store import File
from pipelines.indexing.staging.plan_build import Progress
from planning.measure.watch_processes import in_fresh_process, watched_tree


@dataclass(frozen=True, slots=True)
class BuildMeasured:
    """Seconds by phase ("all" is everything), bytes by artefact, peak bytes by process.

    `core_seconds` are those of all processes, including Ray's own.
    """

    manifest: Manifest
    seconds: dict[str, float]
    bytes: dict[str, int]
    memory: dict[str, int]
    core_seconds: float


@dataclass(slots=True)
class _Clock:
    """Time of each phase's last progress event, and the largest size of staging in bytes."""

    staging: Location
    last: dict[str, float] = field(default_factory=dict)
    staged_bytes: int = 0

    def hear(self, event: Progress) -> None:
        self.last[event.stage] = time.monotonic()
        if event.stage == "index":
            self.staged_bytes = max(self.staged_bytes, sum(list_files(self.staging).values()))


def _artefact_bytes(manifest: Manifest, staged: int) -> dict[str, int]:
    found = {"staging": staged, "vocabulary": manifest.vocabulary.bytes}
    names = {
        "vectors.faiss": "vectors",
        "tokens.bin": "token vectors",
        "term-counts.arrow": "term counts",
    }
    for segment in manifest.segments:
        for name, entry in segment.artefacts.items():
            kind = "BM25" if name.startswith("bm25-") else names.get(name, "records")
            found[kind] = found.get(kind, 0) + entry.bytes
    return found


def build_here(
    sources: Sequence[File], settings: Settings, *, update: bool = False
) -> BuildMeasured:
    """Build or update in this process and its children; raise CiteRayError if that fails."""
    from pipelines.indexing.jobs import build_index, update_index

    clock = _Clock(settings.index.location / "staging")
    begun = time.monotonic()
    with watched_tree(mapped={"encode worker"}) as tree, ray_session(settings.ray):
        started = time.monotonic()
        if update:
            result = update_index(sources, settings, clock.hear, allow_gap=True)
        else:
            result = build_index(sources, settings, clock.hear)
        ended = time.monotonic()
    if result.manifest is None or result.failed:
        raise CiteRayError(f"the build failed: {result.failed[0].error}")
    embedded, indexed = clock.last["embed"], clock.last["index"]
    seconds = {
        "start": started - begun,
        "parse, embed": embedded - started,
        "index": indexed - embedded,
        "publish": ended - indexed,
        "all": ended - begun,
    }
    by_artefact = _artefact_bytes(result.manifest, clock.staged_bytes)
    return BuildMeasured(result.manifest, seconds, by_artefact, dict(tree.peaks), tree.core_seconds)


def build_watched(sources: Sequence[File], settings: Settings) -> BuildMeasured:
    """Build an index of `sources` at `settings.index.path` in a new process."""
    return in_fresh_process(build_here, sources, settings).result
