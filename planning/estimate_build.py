"""Estimate a build from coefficients: bytes, memory by process, seconds by phase."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cluster.settings.settings import Settings
from planning.figures import Figure
from planning.measure.coefficients import Coefficients
from planning.measure.watch_processes import usable_cpus


@dataclass(frozen=True, slots=True)
class Size:
    """A corpus split into shards. `terms` and `shard_terms` count distinct terms."""

    citations: int
    passages: float
    shards: int
    terms: float
    shard_terms: float

    @classmethod
    def of(cls, found: Coefficients, citations: int, shards: int) -> Size:
        """Size of `citations` in `shards` equal parts; distinct terms grow by Heaps' law."""
        heaps = found.corpus.term_rows
        passages = citations * found.corpus.passages_per_citation
        return cls(citations, passages, shards, heaps.at(citations), heaps.at(citations / shards))

    @property
    def shard_citations(self) -> float:
        """Mean number of citations in a shard."""
        return self.citations / self.shards

    @property
    def shard_passages(self) -> float:
        """Mean number of passages in a shard."""
        return self.passages / self.shards


@dataclass(frozen=True, slots=True)
class Fleet:
    """The machines of a build: cores and GPUs of all nodes, and concurrent encoders."""

    nodes: int
    cpus: int
    gpus: int
    encoders: int
    build_threads: int
    training_vectors: int

    @classmethod
    def here(cls, settings: Settings) -> Fleet:
        """Return this machine, as a build with these settings uses it."""
        cpus = settings.ray.cpus or usable_cpus()
        index, encoder = settings.index, settings.encoder
        gpus = math.ceil(encoder.gpus * encoder.actors)
        return cls(1, cpus, gpus, encoder.actors, index.build_threads, index.training_vectors)


def artefact_bytes(found: Coefficients, size: Size) -> list[Figure]:
    """Return the bytes on disk by artefact; staging exists only during the build."""
    a = found.artefacts
    by_citation = {
        "staging": a.staging_bytes_per_citation,
        "records": a.record_bytes_per_citation,
        "BM25": a.bm25_bytes_per_citation,
    }
    return [
        *(
            Figure.of(name, "bytes", "citations x bytes_per_citation", size.citations, each)
            for name, each in by_citation.items()
        ),
        Figure.of("vectors", "bytes", "passages x bytes_per_passage",
                  size.passages, a.vector_bytes_per_passage),
        # Memory-mapped; a question reads only those of its candidates.
        Figure.of("token vectors", "bytes", "passages x bytes_per_passage",
                  size.passages, a.token_bytes_per_passage),
        Figure.of("term counts", "bytes", "shards x term_rows_of_a_shard x bytes_per_row",
                  size.shards, size.shard_terms, a.term_count_bytes_per_row),
        Figure.of("vocabulary", "bytes", "base_bytes + term_rows x bytes_per_row",
                  a.vocabulary_bytes.base, size.terms, a.vocabulary_bytes.slope),
    ]  # fmt: skip


def shard_bytes(found: Coefficients, size: Size) -> float:
    """Return the bytes of one shard that searches map into memory."""
    mapped = ("records", "BM25", "vectors")
    return sum(f.value for f in artefact_bytes(found, size) if f.name in mapped) / size.shards


def process_memory(found: Coefficients, size: Size, training_vectors: int) -> list[Figure]:
    """Return the peak anonymous memory of each kind of process of a build."""
    m = found.memory
    # Vectors are sampled by whole citations, from each shard in turn.
    sampled = min(training_vectors, size.citations)
    return [
        Figure("driver", m.driver_bytes, "bytes", "as measured"),
        Figure("read worker", m.read_worker_bytes, "bytes", "as measured"),
        Figure("encode worker", m.encode_worker_bytes, "bytes", "as measured"),
        Figure.of("sample task", "bytes", "base_bytes + sampled_citations x bytes_per_citation",
                  m.sample_task_base_bytes, sampled, m.sample_task_bytes_per_citation),
        # The graph, BM25's writers and the counted terms are in memory at the same time.
        Figure.of("shard task", "bytes",
                  "base_bytes + passages_of_a_shard x vector_bytes + term_rows_of_a_shard x bytes",
                  m.shard_task_bytes.base, size.shard_passages,
                  found.artefacts.vector_bytes_per_passage, size.shard_terms,
                  m.shard_task_bytes.slope),
        Figure.of("vocabulary task", "bytes", "base_bytes + term_rows x bytes_per_row",
                  m.vocabulary_task_bytes.base, size.terms, m.vocabulary_task_bytes.slope),
    ]  # fmt: skip


def replica_memory(found: Coefficients, size: Size) -> Figure:
    """Return the memory of one replica of a shard, including its mapped files."""
    own = found.memory.shard_replica_bytes.at(size.shard_citations)
    mapped = shard_bytes(found, size)
    return Figure.of("shard replica", "bytes", "own_bytes + mapped_bytes", own, mapped)


def _start(found: Coefficients) -> Figure:
    words = "as measured: Ray, models, workers"
    return Figure("start", found.building.fixed_seconds, "seconds", words)


def _embed(found: Coefficients, size: Size, fleet: Fleet) -> Figure:
    """Return the larger of two times: all work on all cores, and the encoders' own work."""
    b, n = found.building, size.citations
    each = found.corpus.passages_per_citation * b.encode_seconds_per_passage
    threads = found.encoder_threads if found.machine.device == "cpu" else 1
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
    return Figure.of(
        "train quantiser", "seconds",
        "sampled_citations x sample_seconds + trained_vectors x train_seconds",
        min(size.citations, size.shards * limit), b.sample_core_seconds_per_citation,
        min(limit, size.passages), b.train_core_seconds_per_vector, note="one task",
    )  # fmt: skip


def _index(found: Coefficients, size: Size, fleet: Fleet) -> Figure:
    """Return the time of one task per shard, with up to one task per core at a time."""
    b = found.building
    one = (
        b.records_core_seconds_per_citation
        + b.bm25_core_seconds_per_citation
        + b.terms_core_seconds_per_citation
    )
    rest = size.shard_citations * one
    hnsw = size.shard_passages * b.hnsw_core_seconds_per_passage.mean(size.shard_passages)
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
    return Figure.of(
        "publish", "seconds",
        "merged_rows x merge_seconds + base_seconds + term_rows x seconds_per_row",
        size.shards * size.shard_terms, b.merge_core_seconds_per_row,
        b.publish_core_seconds.base, size.terms, b.publish_core_seconds.slope, note="one process",
    )  # fmt: skip


def build_phases(found: Coefficients, size: Size, fleet: Fleet) -> list[Figure]:
    """Return the wall-clock seconds of each phase, in order."""
    return [
        _start(found),
        _embed(found, size, fleet),
        _train(found, size, fleet),
        _index(found, size, fleet),
        _publish(found, size),
    ]


def core_seconds(found: Coefficients, size: Size, training_vectors: int) -> float:
    """Return the total busy time of all cores."""
    alone = Fleet(1, 1, 0, 10**9, 1, training_vectors)
    _, *phases = build_phases(found, size, alone)
    return found.building.fixed_core_seconds + sum(f.value for f in phases)


def gpu_hours(found: Coefficients, size: Size) -> Figure | None:
    """Return the GPU hours of encoding, or None if no GPU was measured."""
    if found.machine.device == "cpu":
        return None
    each = found.building.encode_seconds_per_passage
    inputs = {"passages": size.passages, "encode_seconds_per_passage": each}
    formula = "passages x encode_seconds_per_passage / 3600"
    return Figure("GPU hours", size.passages * each / 3600, "GPU hours", formula, inputs)


def update_seconds(found: Coefficients, size: Size, changed: int, fleet: Fleet) -> Figure:
    """Return the seconds of an update of `changed` citations, including publishing."""
    each = found.building.update_core_seconds_per_citation / min(size.shards, fleet.cpus)
    index = Figure.of("index", "seconds", "changed x update_seconds_per_citation", changed, each)
    embed = _embed(found, Size.of(found, changed, size.shards), fleet)
    return Figure.total("update", [_start(found), embed, index, _publish(found, size)])
