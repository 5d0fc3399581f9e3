"""What a build or an update is to do, as far as it can be told without Ray."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.errors import CiteRayError, IndexFormatError
from cluster.index.layout import quantiser_file
from cluster.index.manifest import Manifest, check_artefact
from cluster.index.write_segment import SegmentPlan
from cluster.settings.settings import IndexSettings, Settings
from cluster.storage.object_store import File
from cluster.storage.places import Place
from pipelines.build.stage_citations import ParsedSource, read_account, staged_positions

# A gzipped PubMed record is about this long; only progress and the size of parts depend on it.
BYTES_PER_CITATION = 1000


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a build: `done` of `total` `unit`; `total` may still grow."""

    stage: str
    done: int
    total: int
    unit: str


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """`manifest` is the published version, or None when no source could be read."""

    manifest: Manifest | None
    sources: tuple[ParsedSource, ...]

    @property
    def failed(self) -> tuple[ParsedSource, ...]:
        """Sources that could not be read to their end; each has an `error`."""
        return tuple(s for s in self.sources if s.error)


def _digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def build_id(settings: Settings, model_sum: str) -> str:
    """Names the staging that a build may reuse: same passages, same vectors, same shards."""
    tokens, shards = settings.encoder.max_tokens, settings.index.shards
    return _digest([settings.split.model_dump(), model_sum, tokens, shards])


def segment_id(
    build: str,
    settings: IndexSettings,
    sources: Sequence[ParsedSource],
    previous: Manifest | None = None,
) -> str:
    """Names the segments that a rerun may keep: same sources on top of the same segments."""
    without = {"path", "cache", "ef_search", "build_threads", "build_gpus"}
    facts = settings.model_dump(mode="json", exclude=without)
    older = [s.id for s in previous.segments] if previous else []
    return _digest([build, facts, [(s.name, s.sha256) for s in sources], older])


def folded_id(segments: Sequence[str]) -> str:
    """Names the segment that compaction makes of these."""
    return _digest(["folded", *segments])


def segment_plan(
    name: str, quantiser: Place, dimensions: int, settings: IndexSettings
) -> SegmentPlan:
    """How to write the segment `name`: the index settings with its quantiser."""
    return SegmentPlan(
        id=name,
        quantiser=quantiser,
        dimensions=dimensions,
        bm25_over=settings.bm25_over,
        vectors=settings.vectors,
        hnsw_m=settings.hnsw_m,
        ef_construction=settings.ef_construction,
        threads=settings.build_threads,
        gpus=settings.build_gpus,
    )


def quantiser_of(index: Place, manifest: Manifest) -> Place:
    """The quantiser that new segments of `manifest` must share, verified.

    Raises IndexFormatError where it is damaged, or where there is none because an older
    CiteRay built the index: it kept too little for the index to change.
    """
    if manifest.quantiser is None:
        raise IndexFormatError(
            f"{index}: {manifest.version} was built by an older CiteRay, which kept too little to "
            "update or compact it; build the index again"
        )
    path = index / quantiser_file(manifest.quantiser.sha256)
    check_artefact(path, manifest.quantiser)
    return path


def expected_citations(pending: Sequence[tuple[File, Place]], done: int) -> int:
    """Citations in all sources: counted where a file was read, else judged by its size."""
    known = judged = 0
    for path, directory in pending:
        account = read_account(directory)
        if account:
            known += account.kept
        else:
            judged += path.stat().st_size // BYTES_PER_CITATION
    return max(known + judged, done)


def staged_account(path: File, directory: Place) -> ParsedSource:
    """The account of a staged source.

    Raises CiteRayError if any of its rows is missing, and if the source changed meanwhile.
    """
    account = read_account(directory)
    if account and account.error:
        return account
    if account is None or len(staged_positions(directory)) < account.kept:
        raise CiteRayError(f"{path.name}: not staged to its end; run the same command again")
    if not directory.name.endswith(f"-{account.bytes}-{account.modified_ns}"):
        raise CiteRayError(f"{path.name}: changed while it was read; run the same command again")
    return account
