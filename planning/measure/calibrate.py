"""Measure this machine with the user's own settings, in a few minutes."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from cluster.index.vectors import Vectors
from cluster.models.adapters import model_folder
from cluster.settings.settings import Settings
from cluster.settings.stages.index import IndexSettings
from cluster.storage.object_store import File
from pipelines.indexing.shards.build_shard import train_quantiser
from pipelines.indexing.staging.plan_build import segment_plan
from pipelines.indexing.staging.split_passages import make_splitter
from pipelines.sample.generate_citations import write_generated
from planning.estimate_build import Fleet, Size, build_phases
from planning.measure import measure_build as build
from planning.measure.coefficients import (
    Artefacts,
    Building,
    Coefficients,
    Corpus,
    Machine,
    MeasuredWith,
    Memory,
)
from planning.measure.fit import Growth, Heaps, Line
from planning.measure.measure_graph import measure_hnsw
from planning.measure.measure_search import Tell, measure_serving
from planning.measure.sample_corpus import GENERATED, StandIn, sample_files
from planning.measure.watch_build import BuildMeasured, build_watched
from planning.measure.watch_processes import usable_cpus

if TYPE_CHECKING:
    from cluster.models.encoder import Encoder


@dataclass(frozen=True, slots=True)
class Effort:
    """Sizes of the measurements: citations (two sizes), passages, questions and repeats."""

    small: int = 8_000
    large: int = 32_000
    passages: int = 1_000
    questions: int = 60
    repeats: int = 3
    built: int = 4_000


def load_encoder(settings: Settings) -> Encoder:
    """Load the encoder of the settings."""
    from cluster.models.encoder import Encoder

    chosen = settings.encoder
    return Encoder.by(chosen, model_folder(chosen))


def calibrate(
    settings: Settings, tell: Tell, given: Sequence[File] = (), effort: Effort | None = None
) -> Coefficients:
    """Measure every stage on `given` records, or on generated ones.

    `tell` receives progress messages. Raises InputError if a model is missing or the sample is too
    small, and LLMError if a configured endpoint does not answer.
    """
    effort = effort or Effort()
    with tempfile.TemporaryDirectory(prefix="citeray-calibrate-") as name:
        tell("a small build with Ray, for the fixed time of every build")
        real = small_build(settings, effort.built, Path(name) / "real")
        return measure_all(settings, real, tell, given, effort)


def small_build(settings: Settings, citations: int, folder: Path) -> BuildMeasured:
    """Build an index of `citations` generated records below `folder`, and measure it."""
    sources = write_generated(folder / "sources", citations)
    index = settings.index.model_copy(update={"path": folder / "index"})
    return build_watched(sources, settings.model_copy(update={"index": index}))


def measure_all(
    settings: Settings, real: BuildMeasured, tell: Tell, given: Sequence[File], effort: Effort
) -> Coefficients:
    """Return the coefficients; `real` is a small build with the same settings."""
    load = psutil.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="citeray-calibrate-") as name:
        encoder = load_encoder(settings)
        m = _measure_building(settings, encoder, tell, given, effort, Path(name))
        vocabulary = m.published[-1].path
        shards = [(segment.index, segment.entry) for segment in m.segments]
        serving, replica = measure_serving(
            settings, encoder, tell, effort.questions, shards, vocabulary, m.read.citations
        )
        found = Coefficients(
            format=5,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=_machine(encoder.device, load),
            measured_with=MeasuredWith.of(settings),
            corpus=_corpus(m, encoder.dimensions, "" if given else GENERATED, settings.index),
            artefacts=_artefacts(m, encoder.dimensions),
            building=_building(m),
            memory=_memory(m, real, settings, replica),
            serving=serving,
        )
    return _with_fixed_seconds(found, real, settings)


def _stand_in(
    encoded: Vectors, encoder: Encoder, texts: Sequence[str], index: IndexSettings
) -> StandIn:
    """Return stand-ins for vectors, mixed from `encoded`, and for token codes of `texts`."""
    coded = index.token_codec
    if coded is None:
        return StandIn(encoded)
    tokens = sum(map(len, encoder.token_vectors(texts))) / coded.pool
    return StandIn(
        encoded, tokens / max(sum(map(len, texts)), 1), coded.components * coded.bits // 8
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    """Measurements of a build's stages; pairs are for the small and the large sample."""

    read: build.Read
    encode_seconds: float
    segments: tuple[build.Segment, build.Segment]
    bm25_core_seconds: float
    terms: build.Terms
    published: tuple[build.Published, build.Published]
    hnsw: list[tuple[float, float]]
    update_core_seconds: float

    @property
    def count(self) -> int:
        return len(self.read.citations)


def _measure_building(
    settings: Settings,
    encoder: Encoder,
    tell: Tell,
    given: Sequence[File],
    effort: Effort,
    folder: Path,
) -> _Measured:
    """Measure each stage of a build in turn on a sample, without Ray."""
    split, index = settings.split, settings.index
    splitter = make_splitter(split.method, split.size, split.overlap, encoder.token_offsets)
    tell(f"reading {effort.large:,} citations")
    files = sample_files(folder / "sample", effort.large, given)
    read = build.measure_reading(files, effort.large, splitter)
    citations = read.citations
    tell(f"encoding {effort.passages:,} passages")
    threads = min(settings.encoder.threads, usable_cpus())
    texts = build.first_passages(citations, splitter, effort.passages)
    encoded, encode_s = build.measure_encoding(encoder, texts, effort.repeats, threads)
    stand_in = _stand_in(encoded, encoder, texts, index)
    sizes = (min(effort.small, len(citations) // 2), len(citations))
    few, all_of_them = (
        build.measure_staging(read, size, stand_in, folder / f"staged-{size}") for size in sizes
    )
    # With several threads, the time in which they wait for each other would count as work.
    alone = index.model_copy(update={"build_threads": 1})
    plan = segment_plan("calibration", folder / "quantiser.faiss", encoder.dimensions, alone)
    train_quantiser(all_of_them.vectors, plan.quantiser, plan)
    tell(f"shards of {sizes[0]:,} and {sizes[1]:,} citations")
    small = build.measure_segment(few, plan, folder / "index-small")
    large = build.measure_segment(all_of_them, plan, folder / "index-large")
    passages = large.entry.passages
    tell("a graph, and copies of it")
    hnsw = measure_hnsw(stand_in, plan, max(passages // 3, 1))
    tell("postings, terms, the vocabulary, an update")
    bm25_s = build.measure_bm25(citations[: sizes[0]], splitter, index.bm25_over, folder / "bm25")
    terms = build.measure_terms(citations)
    published = (
        build.measure_publishing(terms.parts[:1], settings, folder / "few"),
        build.measure_publishing(terms.parts, settings, folder / "all"),
    )
    update = segment_plan("update", plan.quantiser, encoder.dimensions, alone)
    update_s = build.measure_update(large, few, update)
    return _Measured(
        read, encode_s, (small, large), bm25_s, terms, published,
        hnsw, update_s,
    )  # fmt: skip


def _with_fixed_seconds(
    found: Coefficients, real: BuildMeasured, settings: Settings
) -> Coefficients:
    """Add the fixed time of a build: the part that the other coefficients do not explain.

    On a shared machine, wall-clock time includes waiting, so it is capped at the busy core time of
    the build.
    """
    size = Size.of(found, settings, real.manifest.citations)
    explained = sum(f.value for f in build_phases(found, size, Fleet.here(found, settings)))
    seconds = min(max(real.seconds["all"] - explained, 0.0), real.core_seconds)
    building = found.building.model_copy(update={"fixed_seconds": seconds})
    return found.model_copy(update={"building": building})


def _machine(device: str, load: float) -> Machine:
    cpus, memory = usable_cpus(), psutil.virtual_memory().total
    gpu = "no GPU" if device == "cpu" else f"encoder on {_gpu_name()}"
    words = f"{cpus} cores ({platform.machine()}), {memory / 2**30:.0f} GiB of memory, {gpu}"
    return Machine(words=words, cpus=cpus, device=device, load=load)


def _gpu_name() -> str:
    import torch

    return str(torch.cuda.get_device_name())


def _corpus(m: _Measured, dimensions: int, generated: str, index: IndexSettings) -> Corpus:
    coded = index.token_codec
    each = coded.components * coded.bits / 8 / coded.pool if coded else 1.0
    tokens = m.segments[1].bytes_of("tokens") / each
    return Corpus(
        words=generated or "the files that --sample named",
        sample_citations=m.count,
        source_bytes_per_citation=m.read.source_bytes,
        passages_per_citation=m.segments[1].entry.passages / m.count,
        tokens_per_passage=tokens / m.segments[1].entry.passages,
        dimensions=dimensions,
        term_rows=Heaps.of(m.terms.points),
    )


def _artefacts(m: _Measured, dimensions: int) -> Artefacts:
    large = m.segments[1]
    # Staged vectors are 16-bit floats.
    embedded = 2 * dimensions * large.entry.passages + large.bytes_of("tokens")
    records = large.bytes_of("citations", "passages", "filters", "supersedes", "terms.")
    terms = max(m.published[-1].rows, 1)
    return Artefacts(
        staging_bytes_per_citation=(large.staged.bytes - embedded) / m.count,
        record_bytes_per_citation=records / m.count,
        bm25_bytes_per_citation=large.bytes_of("bm25") / m.count,
        term_count_bytes_per_row=large.bytes_of("term-counts") / terms,
        vocabulary_bytes=Line.of([(p.rows, p.bytes) for p in m.published]),
    )


def _building(m: _Measured) -> Building:
    large = m.segments[1]
    hnsw, passages = Growth.of(m.hnsw), large.entry.passages
    whole = (large.build.core_seconds - passages * hnsw.mean(passages)) / m.count
    terms, bm25 = m.terms.core_seconds_per_citation, m.bm25_core_seconds
    return Building(
        fixed_seconds=0.0,
        parse_core_seconds_per_citation=m.read.parse_core_seconds,
        split_core_seconds_per_citation=m.read.split_core_seconds,
        encode_seconds_per_passage=m.encode_seconds,
        stage_core_seconds_per_citation=large.staged.core_seconds / m.count,
        records_core_seconds_per_citation=max(whole - bm25 - terms, 0.0),
        bm25_core_seconds_per_citation=bm25,
        terms_core_seconds_per_citation=terms,
        hnsw_core_seconds_per_passage=hnsw,
        merge_core_seconds_per_row=m.terms.merge_core_seconds_per_row,
        publish_core_seconds=Line.of([(p.rows, p.cost.core_seconds) for p in m.published]),
        update_core_seconds_per_citation=m.update_core_seconds,
    )


def _memory(m: _Measured, real: BuildMeasured, settings: Settings, replica: Line) -> Memory:
    driver = real.memory["driver"]
    heaps, built = Heaps.of(m.terms.points), real.manifest.citations
    shards = Line.of(
        [(heaps.at(s.entry.citations), s.build.peak_bytes - s.bytes_of("vectors"))
         for s in m.segments]
    )  # fmt: skip
    merging = Line.of([(p.rows, p.cost.peak_bytes) for p in m.published])
    in_shard = heaps.at(built / settings.index.shards)
    return Memory(
        driver_bytes=driver,
        # A task that ended between two samples is assumed to need no more than the driver.
        read_worker_bytes=real.memory.get("read worker", driver),
        encode_worker_bytes=real.memory.get("encode worker", driver),
        shard_task_bytes=_seen(shards, in_shard, real.memory.get("shard task", 0)),
        vocabulary_task_bytes=_seen(
            merging, heaps.at(built), real.memory.get("vocabulary task", 0)
        ),
        shard_replica_bytes=replica,
    )


def _seen(law: Line, n: float, peak: float) -> Line:
    """Raise `law` to the measured peak of a task of size `n`, which includes Ray's own memory."""
    return law.model_copy(update={"base": law.base + max(peak - law.at(n), 0.0)})
