"""From coefficients to what a build takes: bytes, memory by process, seconds by phase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cluster.settings import Settings
from planning.coefficients import Coefficients
from planning.figures import Figure
from planning.watch_processes import usable_cpus


@dataclass(frozen=True, slots=True)
class Size:
    """A corpus cut into shards. `terms` are distinct ones of it all, `shard_terms` of a shard."""

    citations: int
    passages: float
    shards: int
    terms: float
    shard_terms: float

    @classmethod
    def of(cls, found: Coefficients, citations: int, shards: int) -> Size:
        heaps = found.corpus.term_rows
        passages = citations * found.corpus.passages_per_citation
        return cls(citations, passages, shards, heaps.at(citations), heaps.at(citations / shards))

    @property
    def shard_citations(self) -> float:
        return self.citations / self.shards

    @property
    def shard_passages(self) -> float:
        return self.passages / self.shards


@dataclass(frozen=True, slots=True)
class Fleet:
    """What builds: cores and GPUs of all nodes, and the encoders that run at once."""

    nodes: int
    cpus: int
    gpus: int
    encoders: int
    build_threads: int
    training_vectors: int

    @classmethod
    def here(cls, settings: Settings) -> Fleet:
        """This machine, as a build by these settings would use it."""
        cpus = settings.ray.cpus or usable_cpus()
        index, encoder = settings.index, settings.encoder
        gpus = math.ceil(encoder.gpus * encoder.actors)
        return cls(1, cpus, gpus, encoder.actors, index.build_threads, index.training_vectors)


def artefact_bytes(found: Coefficients, size: Size) -> list[Figure]:
    """Bytes on disk by artefact; staging lasts for the build alone."""
    a, n, p = found.artefacts, size.citations, size.passages
    per_citation = (
        ("staging", a.staging_bytes_per_citation),
        ("records", a.record_bytes_per_citation),
        ("BM25", a.bm25_bytes_per_citation),
    )
    figures = [
        Figure(name, n * each, "bytes", "citations x bytes_per_citation",
               {"citations": n, "bytes_per_citation": each})
        for name, each in per_citation
    ]  # fmt: skip
    rows = size.shards * size.shard_terms
    return [
        *figures,
        Figure("vectors", p * a.vector_bytes_per_passage, "bytes", "passages x bytes_per_passage",
               {"passages": p, "bytes_per_passage": a.vector_bytes_per_passage}),
        Figure("term counts", rows * a.term_count_bytes_per_row, "bytes",
               "shards x term_rows_of_a_shard x bytes_per_row",
               {"shards": size.shards, "term_rows_of_a_shard": size.shard_terms,
                "bytes_per_row": a.term_count_bytes_per_row}),
        Figure("vocabulary", a.vocabulary_bytes.at(size.terms), "bytes",
               "base_bytes + term_rows x bytes_per_row",
               {"base_bytes": a.vocabulary_bytes.base, "term_rows": size.terms,
                "bytes_per_row": a.vocabulary_bytes.slope}),
    ]  # fmt: skip


def shard_bytes(found: Coefficients, size: Size) -> float:
    """Bytes of one shard that searches map: records, postings, vectors."""
    a = found.artefacts
    per_citation = a.record_bytes_per_citation + a.bm25_bytes_per_citation
    by_passage = size.shard_passages * a.vector_bytes_per_passage
    return size.shard_citations * per_citation + by_passage


def process_memory(found: Coefficients, size: Size, training_vectors: int) -> list[Figure]:
    """Peak anonymous memory by process of a build."""
    m = found.memory
    # The sample is taken from each shard in turn, whole citations at a time.
    sampled = min(training_vectors, size.citations)
    return [
        Figure("driver", m.driver_bytes + size.terms * m.publish_bytes_per_row, "bytes",
               "driver_bytes + term_rows x publish_bytes_per_row",
               {"driver_bytes": m.driver_bytes, "term_rows": size.terms,
                "publish_bytes_per_row": m.publish_bytes_per_row}),
        Figure("read worker", m.read_worker_bytes, "bytes", "as measured"),
        Figure("encode worker", m.encode_worker_bytes, "bytes", "as measured"),
        Figure("sample task", m.sample_task_base_bytes + sampled * m.sample_task_bytes_per_citation,
               "bytes", "base_bytes + sampled_citations x bytes_per_citation",
               {"base_bytes": m.sample_task_base_bytes, "sampled_citations": sampled,
                "bytes_per_citation": m.sample_task_bytes_per_citation}),
        Figure("shard task", m.shard_task_bytes.at(size.shard_passages), "bytes",
               "base_bytes + passages_of_a_shard x bytes_per_passage",
               {"base_bytes": m.shard_task_bytes.base, "passages_of_a_shard": size.shard_passages,
                "bytes_per_passage": m.shard_task_bytes.slope}),
    ]  # fmt: skip


def _embed(found: Coefficients, size: Size, fleet: Fleet) -> Figure:
    """Whichever is slower: all cores at all the work, or each encoder at its part of it."""
    b, n = found.building, size.citations
    each = found.corpus.passages_per_citation * b.encode_seconds_per_passage
    threads = found.measured_with.encoder_threads if found.machine.device == "cpu" else 1
    # A thread that the machine does not have was never busy.
    threads = min(threads, found.machine.cpus)
    reading = b.parse_core_seconds_per_citation + b.split_core_seconds_per_citation
    cores = reading + b.stage_core_seconds_per_citation + threads * each
    encoder = each + b.stage_core_seconds_per_citation
    value = n * max(cores / fleet.cpus, encoder / fleet.encoders)
    return Figure(
        "parse, embed", value, "seconds",
        "citations x max(core_seconds_per_citation / cores, "
        "encoder_seconds_per_citation / encoders)",
        {"citations": n, "core_seconds_per_citation": cores, "cores": fleet.cpus,
         "encoder_seconds_per_citation": encoder, "encoders": fleet.encoders},
    )  # fmt: skip


def _train(found: Coefficients, size: Size, fleet: Fleet) -> Figure:
    b, limit = found.building, fleet.training_vectors
    sampled = min(size.citations, size.shards * limit)
    trained = min(limit, size.passages)
    value = sampled * b.sample_core_seconds_per_citation + trained * b.train_core_seconds_per_vector
    return Figure(
        "train quantiser", value, "seconds",
        "sampled_citations x sample_seconds + trained_vectors x train_seconds (one task)",
        {"sampled_citations": sampled, "sample_seconds": b.sample_core_seconds_per_citation,
         "trained_vectors": trained, "train_seconds": b.train_core_seconds_per_vector},
    )  # fmt: skip


def _index(found: Coefficients, size: Size, fleet: Fleet) -> Figure:
    """One task a shard, as many at once as there are cores, an HNSW by several threads each."""
    b = found.building
    one = (
        b.records_core_seconds_per_citation
        + b.bm25_core_seconds_per_citation
        + b.terms_core_seconds_per_citation
    )
    rest = size.shard_citations * one
    hnsw = size.shard_passages * b.hnsw_core_seconds_per_passage.at(size.shard_passages)
    at_once = min(size.shards, fleet.cpus)
    threads = min(fleet.build_threads, max(fleet.cpus // at_once, 1))
    waves = math.ceil(size.shards / at_once)
    value = max(waves * (rest + hnsw / threads), size.shards * (rest + hnsw) / fleet.cpus)
    return Figure(
        "index", value, "seconds",
        "max(waves x (rest + hnsw / threads), shards x (rest + hnsw) / cores)",
        {"waves": waves, "rest_core_seconds_of_a_shard": rest, "hnsw_core_seconds_of_a_shard": hnsw,
         "threads": threads, "shards": size.shards, "cores": fleet.cpus},
    )  # fmt: skip


def _publish(found: Coefficients, size: Size) -> Figure:
    b = found.building
    merged = size.shards * size.shard_terms
    value = merged * b.merge_core_seconds_per_row + b.publish_core_seconds.at(size.terms)
    return Figure(
        "publish", value, "seconds",
        "merged_rows x merge_seconds + base_seconds + term_rows x seconds_per_row (one process)",
        {"merged_rows": merged, "merge_seconds": b.merge_core_seconds_per_row,
         "base_seconds": b.publish_core_seconds.base, "term_rows": size.terms,
         "seconds_per_row": b.publish_core_seconds.slope},
    )  # fmt: skip


def build_phases(found: Coefficients, size: Size, fleet: Fleet) -> list[Figure]:
    """Seconds of the clock by phase, one after the other."""
    fixed = Figure("start", found.building.fixed_seconds, "seconds",
                   "as measured: Ray, models, workers")  # fmt: skip
    return [
        fixed,
        _embed(found, size, fleet),
        _train(found, size, fleet),
        _index(found, size, fleet),
        _publish(found, size),
    ]


def core_seconds(found: Coefficients, size: Size, training_vectors: int) -> Figure:
    """How long cores are busy in all, whatever their number."""
    alone = Fleet(1, 1, 0, 10**9, 1, training_vectors)
    phases = build_phases(found, size, alone)[1:]
    fixed = Figure("start", found.building.fixed_core_seconds, "seconds", "as measured")
    return total("core seconds", [fixed, *phases])


def total(name: str, figures: Sequence[Figure]) -> Figure:
    inputs = {f.name: f.value for f in figures}
    return Figure(name, sum(inputs.values()), figures[0].unit, " + ".join(inputs), inputs)


def gpu_hours(found: Coefficients, size: Size) -> Figure | None:
    """GPU hours of encoding; None where no GPU was measured."""
    if found.machine.device == "cpu":
        return None
    each = found.building.encode_seconds_per_passage
    return Figure(
        "GPU hours", size.passages * each / 3600, "GPU hours",
        "passages x encode_seconds_per_passage / 3600",
        {"passages": size.passages, "encode_seconds_per_passage": each},
    )  # fmt: skip


def update_seconds(found: Coefficients, size: Size, changed: int, fleet: Fleet) -> list[Figure]:
    """An update of `changed` citations: it costs what they cost, and publishing anew."""
    b = found.building
    small = Size.of(found, changed, size.shards)
    each = b.update_core_seconds_per_citation
    cores = min(size.shards, fleet.cpus)
    return [
        Figure("start", b.fixed_seconds, "seconds", "as measured"),
        _embed(found, small, fleet),
        Figure("index", changed * each / cores, "seconds",
               "changed x update_core_seconds_per_citation / cores",
               {"changed": changed, "update_core_seconds_per_citation": each, "cores": cores}),
        _publish(found, size),
    ]  # fmt: skip
