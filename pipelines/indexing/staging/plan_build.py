"""Plan a build or an update: the parts that do not need Ray."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cluster.errors import CiteRayError
from cluster.index.layout import codec_file, quantiser_file
from cluster.index.manifest import Manifest, TokensEntry, artefact, check_artefact
from cluster.index.tokens.shared_codec import open_codec
from cluster.index.versions import analyser_of
from cluster.index.write_segment import SegmentPlan
from cluster.settings.settings import Settings
from cluster.settings.stages.index import IndexSettings
from cluster.storage.locations import Location, list_files
from cluster.storage.object_store import File
from cluster.text.analysis import ANALYSER
from pipelines.indexing.staging.read_source import BYTES_PER_CITATION
from pipelines.indexing.staging.stage_citations import ParsedSource, read_account, staged_positions
from pipelines.indexing.staging.staging_tasks import CodedTokens

# Staging of another format is not reused. Format 1 had no versions of deletions, format 2 no ranges
# of vectors, format 3 no references.
STAGING_FORMAT = 4


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a step: `done` of `total` items, counted in `unit`; `total` may still grow."""

    stage: str
    done: int
    total: int
    unit: str


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """`manifest` is the published version, or None when no source could be read.

    `sources` are those that were read. `held` names those that the index already held with the same
    content, and `notes` are sentences about sources that were left out and about their order.
    """

    manifest: Manifest | None
    sources: tuple[ParsedSource, ...]
    held: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[ParsedSource, ...]:
        """Return the sources that could not be read to their end; each has an `error`."""
        return tuple(s for s in self.sources if s.error)

    @property
    def damaged(self) -> tuple[str, ...]:
        """Return a description of each unreadable record that was skipped: where and why."""
        return tuple(place for s in self.sources if not s.error for place in s.damaged)


def refuse_damaged(account: ParsedSource) -> ParsedSource:
    """Return `account` with an error if a record of the source was skipped as unreadable."""
    if account.error or not account.damaged:
        return account
    error = f"{account.damaged[0]}; download it again, or omit --strict to skip the record"
    return account.model_copy(update={"error": error})


def digest_of(facts: Any) -> str:
    """Return a short digest of values that JSON can represent."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def build_id(settings: Settings, model_sum: str) -> str:
    """Return the name of the staging of builds with the same passages, vectors and shards.

    With token vectors, the name of their codec is appended (`staging_name`).
    """
    tokens, shards = settings.encoder.max_tokens, settings.index.shards
    coded = settings.index.token_codec
    facts = [STAGING_FORMAT, settings.split.model_dump(), model_sum, tokens, shards]
    return digest_of([*facts, coded.model_dump() if coded else None])


def staging_name(build: str, tokens: TokensEntry | None) -> str:
    """Return the name of the staging folder; each codec of token vectors has its own folder."""
    return f"{build}-{tokens.codec.sha256[:16]}" if tokens else build


def tokens_entry(settings: Settings, codec: Location | None) -> TokensEntry | None:
    """Return the manifest entry for token vectors coded with `codec`; None if none are stored."""
    chosen = settings.index.token_codec
    if chosen is None or codec is None:
        return None
    return TokensEntry(
        components=chosen.components, bits=chosen.bits, pool=chosen.pool, codec=artefact(codec)
    )


def coded_tokens(index: Location, tokens: TokensEntry | None) -> CodedTokens | None:
    """Return how to code new token vectors; None if none are stored.

    Raises the same errors as `open_codec`.
    """
    codec = open_codec(index, tokens)
    return CodedTokens(codec, tokens.pool) if codec and tokens else None


def staged_codec(index: Location, build: str) -> Location | None:
    """Return the codec with which an interrupted run of `build` staged its tokens, if any."""
    names = [name.split("/")[0] for name in list_files(index / "staging")]
    for sum_ in sorted({n.removeprefix(f"{build}-") for n in names if n.startswith(f"{build}-")}):
        path = index / codec_file(sum_)
        if path.is_file():
            return path
    return None


def index_facts(settings: IndexSettings) -> dict[str, Any]:
    """Return the settings that determine the content of segments."""
    without = {"path", "cache", "ef_search", "build_threads", "build_gpus"}
    return settings.model_dump(mode="json", exclude=without)


def segment_id(
    build: str,
    settings: IndexSettings,
    sources: Sequence[ParsedSource],
    previous: Manifest | None = None,
) -> str:
    """Return the name of new segments, which depends on the sources and the existing segments.

    A rerun reuses complete segments of this name.
    """
    older = [s.id for s in previous.segments] if previous else [ANALYSER.name]
    return digest_of([build, index_facts(settings), [(s.name, s.sha256) for s in sources], older])


def folded_id(segments: Sequence[str]) -> str:
    """Return the name of the segment into which compaction merges `segments`."""
    return digest_of(["folded", *segments])


def segment_plan(
    name: str, quantiser: Location, dimensions: int, settings: IndexSettings
) -> SegmentPlan:
    """Return how to write the segment `name` of a new index."""
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


def added_segment_plan(
    name: str, quantiser: Location, manifest: Manifest, settings: IndexSettings
) -> SegmentPlan:
    """Return how to write a segment beside those of `manifest`, with their BM25 analyser.

    Raises IndexFormatError if the analyser is unknown.
    """
    plan = segment_plan(name, quantiser, manifest.encoder.dimensions, settings)
    return replace(plan, analyser=analyser_of(manifest))


def quantiser_of(index: Location, manifest: Manifest) -> Location:
    """Return the quantiser that new segments of `manifest` must use, after verifying it.

    Raises IndexFormatError if it is damaged.
    """
    path = index / quantiser_file(manifest.quantiser.sha256)
    check_artefact(path, manifest.quantiser)
    return path


class ExpectedCitations:
    """Number of citations in all sources: estimated from a file's size until the file is read.

    A source's account is looked up when its first citations are staged, and again when their number
    has doubled. Looking up all accounts at every part would read a store millions of times.
    """

    def __init__(self, pending: Sequence[tuple[File, Location]]) -> None:
        self._unread = {path.name: directory for path, directory in pending}
        self._look_at = dict.fromkeys(self._unread, 0)
        self._staged = dict.fromkeys(self._unread, 0)
        self._expected = {
            path.name: path.stat().st_size // BYTES_PER_CITATION for path, _ in pending
        }
        self._total = sum(self._expected.values())

    def after(self, source: str, citations: int) -> int:
        """Return the number of citations expected in all, after `citations` more of a source."""
        self._staged[source] += citations
        if source in self._unread and self._staged[source] >= self._look_at[source]:
            self._look(source)
        return self._total

    def _look(self, source: str) -> None:
        account = read_account(self._unread[source])
        if account is None:
            self._look_at[source] = 2 * self._staged[source]
            return
        self._total += account.kept - self._expected[source]
        del self._unread[source]


def staged_account(path: File, directory: Location) -> ParsedSource:
    """Return the account of a staged source.

    Raises CiteRayError if any of its rows is missing, or if the source changed during the run.
    """
    account = read_account(directory)
    if account and account.error:
        return account
    if account is None or len(staged_positions(directory)) < account.kept:
        raise CiteRayError(f"{path.name}: not staged to its end; run the same command again")
    if not directory.name.endswith(f"-{account.bytes}-{account.modified_ns}"):
        raise CiteRayError(f"{path.name}: changed while it was read; run the same command again")
    return account
