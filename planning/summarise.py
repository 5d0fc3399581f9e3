"""From what was measured to coefficients."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import UTC, datetime

import psutil

from cluster.settings import Settings
from planning.coefficients import (
    Artefacts,
    Building,
    Coefficients,
    Corpus,
    Machine,
    MeasuredWith,
    Memory,
    Point,
    Serving,
)
from planning.estimate_build import Fleet, Size, build_phases, core_seconds
from planning.fit import Heaps, Line, Logarithmic
from planning.measure_build import (
    Encoded,
    Published,
    Quantiser,
    Read,
    Segment,
    Staged,
    Terms,
)
from planning.measure_search import Searched
from planning.sample_corpus import GENERATED
from planning.watch_build import BuildMeasured
from planning.watch_processes import usable_cpus


@dataclass(frozen=True, slots=True)
class Measured:
    """What a calibration saw of a build; pairs are of the small size and the large one."""

    real: BuildMeasured
    generated: bool
    read: Read
    encoded: Encoded
    dimensions: int
    staged: Staged
    quantiser: Quantiser
    segments: tuple[Segment, Segment]
    bm25_core_seconds: float
    terms: Terms
    published: tuple[Published, Published]
    update_core_seconds: float
    verify_seconds: float

    @property
    def count(self) -> int:
        return len(self.read.citations)


@dataclass(frozen=True, slots=True)
class ServingMeasured:
    searched: tuple[Searched, Searched]
    expand: tuple[Point, ...]
    encode: tuple[Point, ...]
    rerank_pairs: int
    rerank: tuple[Point, ...]
    llm: tuple[Point, ...]


def summarise(
    settings: Settings, device: str, load: float, measured: Measured, serving: ServingMeasured
) -> Coefficients:
    found = Coefficients(
        format=1,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=_machine(device, load),
        measured_with=MeasuredWith.of(settings),
        corpus=_corpus(measured),
        artefacts=_artefacts(measured),
        building=_building(measured),
        memory=_memory(measured, serving),
        serving=_serving(settings, serving),
    )
    return _with_fixed_seconds(found, measured.real, settings)


def _with_fixed_seconds(
    found: Coefficients, real: BuildMeasured, settings: Settings
) -> Coefficients:
    """What the other coefficients do not explain of the small build, any build takes.

    On a machine that others use too its clock runs on while it waits, but its cores tell.
    """
    fleet = Fleet.here(settings)
    size = Size.of(found, real.manifest.citations, settings.index.shards)
    explained = sum(f.value for f in build_phases(found, size, fleet))
    worked = core_seconds(found, size, fleet.training_vectors).value
    cores = max(real.core_seconds - worked, 0.0)
    seconds = min(max(real.seconds["all"] - explained, 0.0), cores)
    fixed = {"fixed_seconds": seconds, "fixed_core_seconds": cores}
    return found.model_copy(update={"building": found.building.model_copy(update=fixed)})


def _machine(device: str, load: float) -> Machine:
    cpus, memory = usable_cpus(), psutil.virtual_memory().total
    gpu = "no GPU" if device == "cpu" else f"encoder on {_gpu_name()}"
    words = f"{cpus} cores ({platform.machine()}), {memory / 2**30:.0f} GiB of memory, {gpu}"
    return Machine(words=words, cpus=cpus, memory_bytes=memory, device=device, load=load)


def _gpu_name() -> str:
    import torch

    return str(torch.cuda.get_device_name())


def _corpus(measured: Measured) -> Corpus:
    words = GENERATED if measured.generated else "the files that --sample named"
    return Corpus(
        words=words,
        sample_citations=measured.count,
        source_bytes_per_citation=measured.read.source_bytes,
        passages_per_citation=measured.segments[1].entry.passages / measured.count,
        dimensions=measured.dimensions,
        term_rows=Heaps.of(measured.terms.points),
    )


def _artefacts(measured: Measured) -> Artefacts:
    large, count = measured.segments[1], measured.count
    terms = max(len(measured.terms.counts[-1]), 1)
    records = large.bytes_of("citations", "passages", "supersedes", "dead")
    return Artefacts(
        staging_bytes_per_citation=measured.staged.bytes / count,
        record_bytes_per_citation=records / count,
        bm25_bytes_per_citation=large.bytes_of("bm25") / count,
        vector_bytes_per_passage=large.bytes_of("vectors") / large.entry.passages,
        term_count_bytes_per_row=large.bytes_of("term-counts") / terms,
        vocabulary_bytes=Line.of([(p.rows, p.bytes) for p in measured.published]),
    )


def _building(measured: Measured) -> Building:
    large, count = measured.segments[1], measured.count
    whole = (large.build.core_seconds - large.hnsw_core_seconds) / count
    terms, bm25 = measured.terms.core_seconds_per_citation, measured.bm25_core_seconds
    hnsw = [(s.entry.passages, s.hnsw_core_seconds / s.entry.passages) for s in measured.segments]
    published = [(p.rows, p.cost.core_seconds) for p in measured.published]
    return Building(
        fixed_seconds=0.0,
        fixed_core_seconds=0.0,
        parse_core_seconds_per_citation=measured.read.parse_core_seconds,
        split_core_seconds_per_citation=measured.read.split_core_seconds,
        encode_seconds_per_passage=measured.encoded.seconds_per_passage,
        stage_core_seconds_per_citation=measured.staged.core_seconds / count,
        sample_core_seconds_per_citation=measured.quantiser.sampling.core_seconds / count,
        train_core_seconds_per_vector=measured.quantiser.train_core_seconds,
        records_core_seconds_per_citation=max(whole - bm25 - terms, 0.0),
        bm25_core_seconds_per_citation=bm25,
        terms_core_seconds_per_citation=terms,
        hnsw_core_seconds_per_passage=Logarithmic.of(hnsw),
        merge_core_seconds_per_row=measured.terms.merge_core_seconds_per_row,
        publish_core_seconds=Line.of(published),
        update_core_seconds_per_citation=measured.update_core_seconds,
        verify_seconds_per_byte=measured.verify_seconds,
    )


def _memory(measured: Measured, serving: ServingMeasured) -> Memory:
    real, sampling = measured.real.memory, measured.quantiser.sampling
    driver = real["driver"]
    published = [(p.rows, p.cost.peak_bytes) for p in measured.published]
    return Memory(
        driver_bytes=driver,
        # A task that ended between two looks needed no more than the driver did.
        read_worker_bytes=real.get("read worker", driver),
        encode_worker_bytes=real.get("encode worker", driver),
        shard_task_bytes=Line.of(
            [(s.entry.passages, s.build.peak_bytes) for s in measured.segments]
        ),
        sample_task_base_bytes=sampling.base_bytes,
        sample_task_bytes_per_citation=(sampling.peak_bytes - sampling.base_bytes) / measured.count,
        publish_bytes_per_row=Line.of(published).slope,
        shard_replica_bytes=Line.of([(s.citations, s.peak_bytes) for s in serving.searched]),
    )


def _serving(settings: Settings, measured: ServingMeasured) -> Serving:
    large = measured.searched[1]
    join = large.median("search") - large.median("dense") - large.median("bm25")
    ordered = sorted(large.spent["search"])
    spread = ordered[int(0.95 * (len(ordered) - 1))] / large.median("search")
    return Serving(
        expand=measured.expand,
        encode=measured.encode,
        statistics_seconds=large.median("statistics"),
        dense_seconds=Logarithmic.of([(s.passages, s.median("dense")) for s in measured.searched]),
        bm25_seconds=Line.of([(s.citations, s.median("bm25")) for s in measured.searched]),
        join_seconds=max(join, 0.0),
        fetch_seconds=large.median("fetch"),
        shard_p95_over_median=max(spread, 1.0),
        rerank_pairs=measured.rerank_pairs,
        rerank=measured.rerank,
        llm=measured.llm,
        llm_tokens=settings.llm.ideal_tokens if measured.llm else 0,
    )
