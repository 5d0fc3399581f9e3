"""From coefficients to what a build takes: bytes, memory by process, seconds by phase."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cluster.settings.settings import Settings
from planning.figures import Figure
from planning.measure.coefficients import Coefficients
from planning.measure.watch_processes import usable_cpus


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
        # Mapped like the others, and of it a question reads only its candidates'.
        Figure.of("token vectors", "bytes", "passages x bytes_per_passage",
                  size.passages, a.token_bytes_per_passage),
        Figure.of("term counts", "bytes", "shards x term_rows_of_a_shard x bytes_per_row",
                  size.shards, size.shard_terms, a.term_count_bytes_per_row),
        Figure.of("vocabulary", "bytes", "base_bytes + term_rows x bytes_per_row",
                  a.vocabulary_bytes.base, size.terms, a.vocabulary_bytes.slope),
    ]  # fmt: skip


def shard_bytes(found: Coefficients, size: Size) -> float:
    """Bytes of one shard that searches map: records, postings, vectors."""
    mapped = ("records", "BM25", "vectors")
    return sum(f.value for f in artefact_bytes(found, size) if f.name in mapped) / size.shards


def process_memory(found: Coefficients, size: Size, training_vectors: int) -> list[Figure]:
    """Peak anonymous memory by process of a build."""
    m = found.memory
    # The sample is taken from each shard in turn, whole citations at a time.
    sampled = min(training_vectors, size.citations)
    return [
        Figure("driver", m.driver_bytes, "bytes", "as measured"),
        Figure("read worker", m.read_worker_bytes, "bytes", "as measured"),
        Figure("encode worker", m.encode_worker_bytes, "bytes", "as measured"),
        Figure.of("sample task", "bytes", "base_bytes + sampled_citations x bytes_per_citation",
                  m.sample_task_base_bytes, sampled, m.sample_task_bytes_per_citation),
        # The graph is built in memory; BM25's writers and the counted terms are beside it.
        Figure.of("shard task", "bytes",
                  "base_bytes + passages_of_a_shard x vector_bytes + term_rows_of_a_shard x bytes",
                  m.shard_task_bytes.base, size.shard_passages,
                  found.artefacts.vector_bytes_per_passage, size.shard_terms,
                  m.shard_task_bytes.slope),
        Figure.of("vocabulary task", "bytes", "base_bytes + term_rows x bytes_per_row",
                  m.vocabulary_task_bytes.base, size.terms, m.vocabulary_task_bytes.slope),
    ]  # fmt: skip


def replica_memory(found: Coefficients, size: Size) -> Figure:
    """One replica of a shard with all that its searches map in memory."""
    own = found.memory.shard_replica_bytes.at(size.shard_citations)
    mapped = shard_bytes(found, size)
    return Figure.of("shard replica", "bytes", "own_bytes + mapped_bytes", own, mapped)


def _start(found: Coefficients) -> Figure:
    words = "as measured: Ray, models, workers"
    return Figure("start", found.building.fixed_seconds, "seconds", words)


def _embed(found: Coefficients, size: Size, fleet: Fleet) -> Figure:
    """Whichever is slower: all cores at all the work, or each encoder at its part of it."""
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
    """One task a shard, as many at once as there are cores, an HNSW by several threads each."""
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
    """Seconds of the clock by phase, one after the other."""
    return [
        _start(found),
        _embed(found, size, fleet),
        _train(found, size, fleet),
        _index(found, size, fleet),
        _publish(found, size),
    ]


def core_seconds(found: Coefficients, size: Size, training_vectors: int) -> float:
    """How long cores are busy in all, whatever their number."""
    alone = Fleet(1, 1, 0, 10**9, 1, training_vectors)
    _, *phases = build_phases(found, size, alone)
    return found.building.fixed_core_seconds + sum(f.value for f in phases)


def gpu_hours(found: Coefficients, size: Size) -> Figure | None:
    """GPU hours of encoding; None where no GPU was measured."""
    if found.machine.device == "cpu":
        return None
    each = found.building.encode_seconds_per_passage
    inputs = {"passages": size.passages, "encode_seconds_per_passage": each}
    formula = "passages x encode_seconds_per_passage / 3600"
    return Figure("GPU hours", size.passages * each / 3600, "GPU hours", formula, inputs)


def update_seconds(found: Coefficients, size: Size, changed: int, fleet: Fleet) -> Figure:
    """An update of `changed` citations: it costs what they cost, and publishing anew."""
    each = found.building.update_core_seconds_per_citation / min(size.shards, fleet.cpus)
    index = Figure.of("index", "seconds", "changed x update_seconds_per_citation", changed, each)
    embed = _embed(found, Size.of(found, changed, size.shards), fleet)
    return Figure.total("update", [_start(found), embed, index, _publish(found, size)])
