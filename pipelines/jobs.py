"""Ray wiring of the index build: the only module of pipelines/ that imports Ray.

    sources --read, split--> batches --embed, stage--> parts --one task a shard--> segments

No text and no vector passes through the driver: it sees file names and counts.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray
import ray.data

from cluster.errors import CiteRayError
from cluster.index.manifest import EncoderEntry, Manifest
from cluster.index.write_segment import SegmentPlan
from cluster.models import ModelStore, checksum
from cluster.object_store import File, named_file
from cluster.settings import EncoderSettings, Settings, SplitSettings
from pipelines.build_shard import (
    ShardSummary,
    build_shard,
    sample_vectors,
    train_quantiser,
)
from pipelines.embed_passages import embed_citations
from pipelines.publish_index import publish_build
from pipelines.read_source import read_source
from pipelines.split_passages import make_splitter
from pipelines.stage_citations import (
    ParsedSource,
    clear,
    complete_account,
    read_account,
    staged_dimensions,
    staged_rows,
    write_part,
)

# A gzipped PubMed record is about this long; only the size of parts depends on it.
BYTES_PER_CITATION = 1000
READ_CPUS, EMBED_CPUS = 0.5, 1
MIN_PART_ROWS, MAX_PART_ROWS = 256, 2048
# A block is about one part, so that counts come back part by part and memory stays small.
BLOCK_BYTES_PER_ROW = 2000


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a build: `done` of `total` `unit`; `total` may still grow."""

    stage: str
    done: int
    total: int
    unit: str


if TYPE_CHECKING:
    from cluster.encoder import Encoder

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """`manifest` is the published version, or None when no source could be read."""

    manifest: Manifest | None
    sources: tuple[ParsedSource, ...]

    @property
    def failed(self) -> tuple[ParsedSource, ...]:
        return tuple(s for s in self.sources if s.error)


def load_encoder(settings: EncoderSettings, model: Path) -> Encoder:
    # Here, not above: the driver never needs torch, which takes seconds to import.
    from cluster.encoder import Encoder

    return Encoder(
        model,
        device=settings.device,
        dtype=settings.dtype,
        max_tokens=settings.max_tokens,
        batch_size=settings.batch_size,
        threads=settings.threads,
    )


def _read_source_rows(
    batch: pa.Table, split: SplitSettings, settings: EncoderSettings, model: Path
) -> Iterator[pa.Table]:
    """Rows (path, staging directory) in, tables in SPLIT_SCHEMA out."""
    offsets = None
    if split.method == "sections":
        offsets = load_encoder(settings, model).token_offsets
    splitter = make_splitter(split.method, split.size, split.overlap, offsets)
    for row in batch.to_pylist():
        yield from read_source(named_file(row["path"]), Path(row["directory"]), splitter)


class _EmbedAndStage:
    """Tables in SPLIT_SCHEMA in, counts by source out; vectors go straight to disk."""

    def __init__(
        self, settings: EncoderSettings, model: Path, directories: dict[str, str], shards: int
    ) -> None:
        self._encoder = load_encoder(settings, model)
        self._directories = directories
        self._shards = shards

    def __call__(self, batch: pa.Table) -> pa.Table:
        embedded = embed_citations(batch, self._encoder.encode)
        names = embedded.column("source")
        counts = []
        for name in names.unique().to_pylist():
            rows = embedded.filter(pa.compute.equal(names, name))
            write_part(rows, Path(self._directories[name]), self._shards)
            counts.append({"source": name, "citations": rows.num_rows})
        return pa.Table.from_pylist(
            counts, schema=pa.schema([("source", pa.string()), ("citations", pa.int64())])
        )


def _build_id(settings: Settings, model_sum: str) -> str:
    """Names the staging that a build may reuse: same passages, same vectors, same shards."""
    tokens, shards = settings.encoder.max_tokens, settings.index.shards
    facts = [settings.split.model_dump(), model_sum, tokens, shards]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _segment_id(build: Path, settings: Settings, sources: Sequence[ParsedSource]) -> str:
    index = settings.index.model_dump(mode="json", exclude={"path", "ef_search", "build_threads"})
    facts = [build.name, index, [(s.name, s.sha256) for s in sources]]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _stage(
    pending: Sequence[tuple[File, Path]], settings: Settings, model: Path, report: Report
) -> None:
    """Read, split, embed and stage the sources that are not staged yet."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # A large shard or a slow model is no stall.
    context.execution_no_progress_timeout_s = -1
    size = sum(path.stat().st_size for path, _ in pending)
    rows = min(max(size // BYTES_PER_CITATION // 50, MIN_PART_ROWS), MAX_PART_ROWS)
    context.target_max_block_size = rows * BLOCK_BYTES_PER_ROW
    directories = {path.name: str(directory) for path, directory in pending}
    items = [{"path": str(path), "directory": str(d)} for path, d in pending]
    dataset = (
        ray.data.from_items(items, override_num_blocks=len(items))
        .map_batches(
            _read_source_rows,
            fn_args=(settings.split, settings.encoder, model),
            batch_size=1,
            batch_format="pyarrow",
            # Unlike the next step's, or Ray Data would fuse the two and read in the encoder.
            num_cpus=READ_CPUS,
        )
        .map_batches(
            _EmbedAndStage,
            fn_constructor_args=(settings.encoder, model, directories, settings.index.shards),
            batch_size=rows,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=settings.encoder.actors),
            num_cpus=EMBED_CPUS,
            num_gpus=settings.encoder.gpus or None,
        )
    )
    done = 0
    for row in dataset.iter_rows():
        done += int(row["citations"])
        report(Progress("embed", done, _expected(pending, done), "citations"))


def _expected(pending: Sequence[tuple[File, Path]], done: int) -> int:
    """Citations in all sources: counted where a file was read, else judged by its size."""
    known = judged = 0
    for path, directory in pending:
        account = read_account(directory)
        if account:
            known += account.kept
        else:
            judged += path.stat().st_size // BYTES_PER_CITATION
    return max(known + judged, done)


@ray.remote(max_retries=3)
def _build_shard_task(*args: Any) -> ShardSummary:
    return build_shard(*args)


@ray.remote
def _train_task(
    directories: Sequence[Path], shards: int, limit: int, path: Path, plan: SegmentPlan
) -> None:
    train_quantiser(sample_vectors(directories, shards, plan.dimensions, limit), path, plan)


def _build_shards(
    index: Path, build: Path, directories: Sequence[Path], plan: SegmentPlan, shards: int,
    report: Report,
) -> list[ShardSummary]:  # fmt: skip
    gpus = 1 if plan.vectors == "flat" and ray.cluster_resources().get("GPU") else 0
    task = _build_shard_task.options(num_cpus=1, num_gpus=gpus)
    refs = [task.remote(index, build, directories, s, plan) for s in range(shards)]
    waiting = list(refs)
    while waiting:
        _, waiting = ray.wait(waiting, num_returns=1)
        report(Progress("index", shards - len(waiting), shards, "shards"))
    summaries: list[ShardSummary] = ray.get(refs)
    return summaries


def _account(path: File, directory: Path) -> ParsedSource:
    """The account of a staged source; raises CiteRayError if any of its rows is missing."""
    account = read_account(directory)
    if account is None or (not account.error and staged_rows(directory) < account.kept):
        raise CiteRayError(f"{path.name}: not staged to its end; run the same build again")
    return account


def build_index(sources: Sequence[File], settings: Settings, report: Report) -> BuildResult:
    """Build a version from `sources`, in their order, and publish it.

    Sources staged by an earlier, interrupted run are not read again. A source that
    cannot be read is left out whole and named in the result; the staging is then kept,
    so that a rerun reads only that source. Raises CiteRayError when none can be read.
    """
    index = settings.index.path.resolve()
    store = ModelStore()
    report(Progress("models", 0, 1, "models"))
    model = store.resolve(settings.encoder.model, settings.encoder.sha256 or None)
    mesh = settings.vocabulary.mesh_headings
    mesh_path = store.resolve(mesh, settings.vocabulary.mesh_sha256 or None) if mesh else None
    report(Progress("models", 1, 1, "models"))
    model_sum = checksum(model)
    build = index / "staging" / _build_id(settings, model_sum)
    staged = [(path, build / f"{number:04d}-{path.name}") for number, path in enumerate(sources, 1)]
    pending = [(p, d) for p, d in staged if complete_account(d, p) is None]
    for _, directory in pending:
        clear(directory)
    if pending:
        _stage(pending, settings, model, report)
    result = BuildResult(None, tuple(_account(p, d) for p, d in staged))
    good = [(d, a) for (_, d), a in zip(staged, result.sources, strict=True) if not a.error]
    if not good:
        return result
    directories = [d for d, _ in good]
    encoder = EncoderEntry(
        model=settings.encoder.model,
        sha256=model_sum,
        dimensions=staged_dimensions(directories),
        max_tokens=settings.encoder.max_tokens,
    )
    plan = SegmentPlan(
        id=_segment_id(build, settings, [a for _, a in good]),
        quantiser=build / "quantiser.faiss",
        dimensions=encoder.dimensions,
        bm25_over=settings.index.bm25_over,
        vectors=settings.index.vectors,
        hnsw_m=settings.index.hnsw_m,
        ef_construction=settings.index.ef_construction,
        threads=settings.index.build_threads,
    )
    shards = settings.index.shards
    limit = settings.index.training_vectors
    ray.get(_train_task.remote(directories, shards, limit, plan.quantiser, plan))
    summaries = _build_shards(index, build, directories, plan, shards, report)
    manifest = publish_build(index, build, settings, encoder, mesh_path, result.sources, summaries)
    if not result.failed:
        shutil.rmtree(index / "staging", ignore_errors=True)
    return BuildResult(manifest, result.sources)
