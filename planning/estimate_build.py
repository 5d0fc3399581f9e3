"""Estimate a build from coefficients: bytes, memory by process, seconds by phase."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cluster.errors import InputError
from cluster.index import cagra
from cluster.settings.settings import Settings
from cluster.settings.stages.index import IndexSettings
from planning.figures import Figure
from planning.measure.coefficients import Coefficients
from planning.measure.watch_processes import usable_cpus


def vector_dimensions(found: Coefficients, settings: Settings) -> int:
    """Return the length of the encoder's vectors; raise InputError if it is not known."""
    chosen = settings.encoder
    if chosen.dimensions is None and chosen.model != found.measured_with.encoder_model:
        raise InputError(
            f"encoder.model {chosen.model}: the length of its vectors is unknown, because the "
            "calibration is of another encoder; add --set encoder.dimensions=N"
        )
    return chosen.dimensions or found.corpus.dimensions


def vector_bytes(index: IndexSettings, dimensions: int) -> float:
    """Return the bytes of one vector in FAISS's HNSW graph.

    A node has 2 M links of 4 bytes on the lowest level, and M links on each higher level that it
    reaches; one in M nodes reaches the next level. It also stores its level (4 bytes) and the
    position of its links (8 bytes).
    """
    stored = {"flat": 4, "fp16": 2, "sq8": 1}[index.vectors] * dimensions
    return stored + 4 * index.hnsw_m * (2 + 1 / (index.hnsw_m - 1)) + 12


def token_bytes(found: Coefficients, index: IndexSettings) -> float:
    """Return the bytes of a passage's stored token vectors; 0 if the index stores none.

    Raises InputError if the tokens were not counted.
    """
    coded, tokens = index.token_codec, found.corpus.tokens_per_passage
    if coded is None:
        return 0.0
    if not tokens:
        raise InputError(
            "index.token_vectors: the calibration counted no tokens, because its index stored "
            "none; calibrate with these settings"
        )
    return tokens / coded.pool * coded.components * coded.bits / 8


@dataclass(frozen=True, slots=True)
class Size:
    """A corpus split into shards. `terms` and `shard_terms` count distinct terms.

    `vector_bytes` and `token_bytes` are those of a passage on disk.
    """

    citations: int
    passages: float
    shards: int
    terms: float
    shard_terms: float
    dimensions: int
    vector_bytes: float
    token_bytes: float

    @classmethod
    def of(cls, found: Coefficients, settings: Settings, citations: int, shards: int = 0) -> Size:
        """Return the size of `citations` in equal `shards` (0: the number in the settings).

        Distinct terms grow by Heaps' law. Raises InputError if the vectors' length is not known.
        """
        heaps, shards = found.corpus.term_rows, shards or settings.index.shards
        dimensions = vector_dimensions(found, settings)
        return cls(
            citations,
            citations * found.corpus.passages_per_citation,
            shards,
            heaps.at(citations),
            heaps.at(citations / shards),
            dimensions,
            vector_bytes(settings.index, dimensions),
            token_bytes(found, settings.index),
        )

    @property
    def shard_citations(self) -> float:
        """Mean number of citations in a shard."""
        return self.citations / self.shards

    @property
    def shard_passages(self) -> float:
        """Mean number of passages in a shard."""
        return self.passages / self.shards

    def longer(self, found: Coefficients) -> float:
        """Return the length of the vectors relative to that of the measured ones."""
        return self.dimensions / found.corpus.dimensions


@dataclass(frozen=True, slots=True)
class Fleet:
    """The machines of a build: cores and GPUs of all nodes.

    `encoders` work at the same time, each for `encode_seconds` per passage on `encode_threads`
    cores. `shard_tasks` shards are built at the same time. Their graphs take `graph_seconds` of a
    GPU per passage; 0 if CPUs build them. Unknown seconds are NaN.
    """

    nodes: int
    cpus: int
    gpus: int
    encoders: int
    encode_seconds: float
    encode_threads: int
    build_threads: int
    shard_tasks: int
    graph_seconds: float = 0.0

    @classmethod
    def here(cls, found: Coefficients, settings: Settings) -> Fleet:
        """Return the measured machine, as a build with these settings uses it."""
        cpus = settings.ray.cpus or usable_cpus()
        index, encoder = settings.index, settings.encoder
        return cls(
            1, cpus, math.ceil(encoder.gpus * encoder.actors), encoder.actors,
            found.building.encode_seconds_per_passage, found.encoder_threads,
            index.build_threads, cpus,
        )  # fmt: skip


def artefact_bytes(found: Coefficients, size: Size) -> list[Figure]:
    """Return the bytes on disk by artefact; staging exists only during the build."""
    a, n, passages = found.artefacts, size.citations, size.passages
    # Staged vectors are 16-bit floats.
    staged = 2 * size.dimensions + size.token_bytes
    return [
        Figure.of("staging", "bytes",
                  "citations x bytes_per_citation + passages x vector_and_token_bytes",
                  n, a.staging_bytes_per_citation, passages, staged),
        Figure.of("records", "bytes", "citations x bytes_per_citation",
                  n, a.record_bytes_per_citation),
        Figure.of("BM25", "bytes", "citations x bytes_per_citation", n, a.bm25_bytes_per_citation),
        Figure.of("vectors", "bytes", "passages x bytes_per_passage", passages, size.vector_bytes,
                  note=f"{size.dimensions} dimensions and their graph"),
        # Memory-mapped; a question reads only the tokens of its candidates.
        Figure.of("token vectors", "bytes", "passages x bytes_per_passage",
                  passages, size.token_bytes),
        Figure.of("term counts", "bytes", "shards x term_rows_of_a_shard x bytes_per_row",
                  size.shards, size.shard_terms, a.term_count_bytes_per_row),
        Figure.of("vocabulary", "bytes", "base_bytes + term_rows x bytes_per_row",
                  a.vocabulary_bytes.base, size.terms, a.vocabulary_bytes.slope),
    ]  # fmt: skip


def shard_bytes(found: Coefficients, size: Size) -> float:
    """Return the bytes of one shard that searches map into memory."""
    mapped = ("records", "BM25", "vectors")
    return sum(f.value for f in artefact_bytes(found, size) if f.name in mapped) / size.shards


def copied_bytes(found: Coefficients, size: Size) -> float:
    """Return the bytes of all files of one shard, which a node that serves it copies and checks."""
    apart = ("staging", "vocabulary")
    return sum(f.value for f in artefact_bytes(found, size) if f.name not in apart) / size.shards


def on_gpus(index: IndexSettings, size: Size) -> bool:
    """Return whether GPUs build the graphs; CPUs always build those of small shards."""
    return index.build_gpus > 0 and size.shard_passages >= cagra.FEWEST_ROWS


def process_memory(found: Coefficients, settings: Settings, size: Size) -> list[Figure]:
    """Return the peak anonymous memory of each kind of process of a build."""
    m, index = found.memory, settings.index
    # For CAGRA, a task holds the vectors as float32 and 12 bytes for each link.
    more = 4 * size.dimensions + 24 * index.hnsw_m if on_gpus(index, size) else 0
    return [
        Figure("driver", m.driver_bytes, "bytes", "as measured"),
        Figure("read worker", m.read_worker_bytes, "bytes", "as measured"),
        Figure("encode worker", m.encode_worker_bytes, "bytes", "as measured"),
        # The graph, BM25's writers and the counted terms are in memory at the same time.
        Figure.of("shard task", "bytes",
                  "base_bytes + passages_of_a_shard x vector_bytes + term_rows_of_a_shard x bytes",
                  m.shard_task_bytes.base, size.shard_passages, size.vector_bytes + more,
                  size.shard_terms, m.shard_task_bytes.slope),
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
    """Return the larger of two times: that of all work on all cores, and that of encoding alone."""
    b, n = found.building, size.citations
    each = found.corpus.passages_per_citation * fleet.encode_seconds
    reading = b.parse_core_seconds_per_citation + b.split_core_seconds_per_citation
    cores = reading + b.stage_core_seconds_per_citation + fleet.encode_threads * each
    encoder = each + b.stage_core_seconds_per_citation
    # numpy's maximum is NaN if one of the times is unknown (NaN).
    value = n * float(np.maximum(cores / fleet.cpus, encoder / fleet.encoders))
    return Figure(
        "parse, embed", value, "seconds",
        "citations x max(core_seconds_per_citation / cores, "
        "encoder_seconds_per_citation / encoders)",
        {"citations": n, "core_seconds_per_citation": cores, "cores": fleet.cpus,
         "encoder_seconds_per_citation": encoder, "encoders": fleet.encoders},
    )  # fmt: skip


def _index(found: Coefficients, size: Size, fleet: Fleet) -> Figure:
    """Return the time of one task per shard, in waves of `fleet.shard_tasks`."""
    b = found.building
    rest = size.shard_citations * (
        b.records_core_seconds_per_citation
        + b.bm25_core_seconds_per_citation
        + b.terms_core_seconds_per_citation
    )
    at_once = min(size.shards, fleet.shard_tasks)
    waves = math.ceil(size.shards / at_once)
    inputs: dict[str, float] = {"waves": waves, "rest_core_seconds_of_a_shard": rest}
    if fleet.graph_seconds != 0:
        sharing = max(at_once / max(fleet.gpus, 1), 1)
        graph = size.shard_passages * fleet.graph_seconds
        inputs |= {"gpu_seconds_of_a_graph": graph, "tasks_per_gpu": sharing}
        formula = "waves x (rest + graph x tasks_per_gpu)"
        return Figure("index", waves * (rest + graph * sharing), "seconds", formula, inputs)
    graph = size.shard_passages * b.hnsw_core_seconds_per_passage.mean(size.shard_passages)
    graph *= size.longer(found)
    threads = min(fleet.build_threads, max(fleet.cpus // at_once, 1))
    value = max(waves * (rest + graph / threads), size.shards * (rest + graph) / fleet.cpus)
    inputs |= {"hnsw_core_seconds_of_a_shard": graph, "threads": threads,
               "shards": size.shards, "cores": fleet.cpus}  # fmt: skip
    formula = "max(waves x (rest + hnsw / threads), shards x (rest + hnsw) / cores)"
    return Figure("index", value, "seconds", formula, inputs)


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
        _index(found, size, fleet),
        _publish(found, size),
    ]


def gpu_hours(settings: Settings, size: Size, fleet: Fleet) -> Figure | None:
    """Return the GPU hours of encoding and of graphs, or None if the build has no GPU."""
    if not fleet.gpus:
        return None
    seconds = fleet.graph_seconds + (fleet.encode_seconds if settings.encoder.gpus else 0.0)
    formula = "passages x gpu_hours_of_encoding_and_graph"
    return Figure.of("GPU hours", "GPU hours", formula, size.passages, seconds / 3600)


def update_seconds(found: Coefficients, changed: Size, size: Size, fleet: Fleet) -> Figure:
    """Return the seconds of an update with the citations of `changed`, including publishing."""
    each = found.building.update_core_seconds_per_citation / min(size.shards, fleet.cpus)
    index = Figure.of(
        "index", "seconds", "changed x update_seconds_per_citation", changed.citations, each
    )
    embed = _embed(found, changed, fleet)
    return Figure.total("update", [_start(found), embed, index, _publish(found, size)])
