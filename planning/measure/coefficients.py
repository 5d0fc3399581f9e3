"""Coefficients of a calibration, from which plans are computed; names include units.

"core_seconds" are busy seconds of one core. "seconds" are wall-clock seconds on an idle machine.
Memory is anonymous memory, which the kernel cannot reclaim, unless noted otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field, ValidationError

from cluster.errors import InputError
from cluster.index.read_shard import limit_of_shard
from cluster.problem_words import problem_words
from cluster.settings.fields import Strict
from cluster.settings.read_config import CONFIGS
from cluster.settings.settings import Settings
from cluster.storage.whole_files import write_atomically
from planning.measure.fit import Growth, Heaps, Line

Model = TypeVar("Model", bound=Strict)
Rate = Annotated[float, Field(gt=0)]
# Documents per second by the number of documents in a batch.
Rates = Annotated[dict[Annotated[int, Field(gt=0)], Rate], Field(min_length=1)]


class GpuCoefficients(Strict):
    """Rates of one GPU, for documents of `mean_tokens_per_document` tokens.

    `encoder_documents_per_s_with_tokens` also computes the token vectors. `graph_vectors_per_s` is
    the rate at which CAGRA builds a graph (`python -m benchmarks.bench_cagra`), if it was measured.
    `memory_bytes` is the GPU's memory.
    """

    kind: Literal["gpu-coefficients"]
    device: str
    encoder_documents_per_s: Rates
    encoder_documents_per_s_with_tokens: Rates
    cross_encoder_pairs_per_s: Rate
    mean_tokens_per_document: Rate
    graph_vectors_per_s: Rate | None = None
    memory_bytes: Annotated[int, Field(gt=0)] | None = None

    def encode_seconds(self, tokens: float, batch: int, *, store_tokens: bool) -> float:
        """Return the seconds per passage of `tokens` tokens, by the batch size nearest to `batch`.

        The time is assumed to be proportional to the number of tokens.
        """
        measured = self.encoder_documents_per_s
        rates = self.encoder_documents_per_s_with_tokens if store_tokens else measured
        rate = rates[min(rates, key=lambda size: abs(size - batch))]
        return tokens / (rate * self.mean_tokens_per_document)


def read_model(kind: type[Model], path: Path, origin: str, mend: str) -> Model:
    """Read a JSON file. InputError names its `origin`, the first error and how to `mend` it."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{origin}: cannot be read ({error}); {mend}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(f"{origin}: {where}: {problem_words(first)}; {mend}") from error


def read_gpu_coefficients(path: Path) -> GpuCoefficients:
    """Read the file of `--gpu`; raise InputError if it is missing or invalid."""
    mend = "write it with `python -m benchmarks.gpu_check` on a machine with a GPU"
    return read_model(GpuCoefficients, path, f"--gpu {path}", mend)


DEFAULT_FILE = Path(".citeray/calibration.json")
# Assumed ratio of the 95th percentile to the median, if only the median is known.
SPREAD = 1.5
SHIPPED = CONFIGS / "calibration" / "laptop.json"


class Machine(Strict):
    """The measured machine. `load` is its load average before the calibration."""

    words: str
    cpus: int
    device: str
    load: float


class MeasuredWith(Strict):
    """The settings for which the coefficients hold, named by section and key."""

    encoder_model: str
    encoder_device: str
    encoder_dtype: str
    encoder_max_tokens: int
    encoder_batch_size: int
    encoder_threads: int
    split: str
    index_vectors: str
    index_hnsw_m: int
    index_ef_construction: int
    index_ef_search: int
    index_bm25_over: tuple[str, ...]
    index_build_threads: int
    reranker: str
    llm: str

    @classmethod
    def of(cls, settings: Settings) -> MeasuredWith:
        """Return the part of `settings` on which the coefficients depend."""
        parts = [field.split("_", 1) for field in cls.model_fields if "_" in field]
        plain = {f"{part}_{name}": getattr(getattr(settings, part), name) for part, name in parts}
        split, reranker, llm = settings.split, settings.reranker, settings.llm
        return cls(
            **plain,
            split=f"{split.method} {split.size}/{split.overlap}",
            reranker=f"{reranker.kind} {reranker.model}".strip(),
            llm=f"{llm.kind} {llm.model_id}" if llm.kind == "url" else "",
        )


class Corpus(Strict):
    """Properties of the records. `term_rows` gives the distinct terms of n citations.

    `tokens_per_passage` is 0 if the measured index stores no token vectors.
    """

    words: str
    sample_citations: int
    source_bytes_per_citation: float
    passages_per_citation: float
    tokens_per_passage: float
    dimensions: int
    term_rows: Heaps


class Artefacts(Strict):
    """Bytes on disk, without vectors and token vectors, whose size follows from the settings."""

    staging_bytes_per_citation: float
    record_bytes_per_citation: float
    bm25_bytes_per_citation: float
    term_count_bytes_per_row: float
    vocabulary_bytes: Line  # Depends on the number of term rows; the base is the size of MeSH.


class Building(Strict):
    """Times of a build; that of HNSW is for adding one passage to a graph of n passages."""

    fixed_seconds: float
    parse_core_seconds_per_citation: float
    split_core_seconds_per_citation: float
    encode_seconds_per_passage: float
    stage_core_seconds_per_citation: float
    records_core_seconds_per_citation: float
    bm25_core_seconds_per_citation: float
    terms_core_seconds_per_citation: float
    hnsw_core_seconds_per_passage: Growth
    merge_core_seconds_per_row: float
    publish_core_seconds: Line  # Depends on the number of term rows of the version.
    update_core_seconds_per_citation: float


class Memory(Strict):
    """Peak memory by process; resident memory for encode workers, which map their models."""

    driver_bytes: float
    read_worker_bytes: float
    encode_worker_bytes: float
    # Depends on the number of distinct terms of the shard; its vectors are not included.
    shard_task_bytes: Line
    # Depends on the number of term rows of the version.
    vocabulary_task_bytes: Line
    # Depends on the number of citations of the shard; mapped files are not included.
    shard_replica_bytes: Line


class Point(Strict):
    """Latency of a stage with this number of concurrent requests."""

    concurrent: int
    median_seconds: float
    p95_seconds: float


def typical_point(concurrent: int, seconds: float) -> Point:
    """Return the latency of a stage, estimated from its median alone."""
    return Point(concurrent=concurrent, median_seconds=seconds, p95_seconds=SPREAD * seconds)


class ShardSearch(Strict):
    """Wall-clock seconds of a search of one of `shards` shards, by the shard's size."""

    shards: int
    dense_seconds: Growth  # Depends on the number of passages of the shard.
    bm25_seconds: Line  # Depends on the number of citations of the shard.
    join_seconds: float

    def at(self, passages: float, citations: float, longer: float) -> float:
        """Return the seconds for a shard of this size, with vectors `longer` times the measured."""
        dense = longer * self.dense_seconds.at(passages)
        return dense + self.bm25_seconds.at(citations) + self.join_seconds


class Serving(Strict):
    """Seconds of one question, which requests `hits` citations from each search branch."""

    expand: tuple[Point, ...]
    encode: tuple[Point, ...]
    hits: int
    statistics_seconds: float
    searches: tuple[ShardSearch, ShardSearch]  # One measurement with few shards, and one with many.
    fetch_seconds: float
    shard_p95_over_median: float
    rerank_pairs: int
    rerank: tuple[Point, ...]
    llm: tuple[Point, ...] = ()

    def search_seconds(
        self, shards: int, passages: float, citations: float, longer: float
    ) -> float:
        """Return the seconds of a shard search, interpolated by the hits that a shard returns."""
        hits = [limit_of_shard(self.hits, n) for n in (shards, *(s.shards for s in self.searches))]
        few, many = (s.at(passages, citations, longer) for s in self.searches)
        return float(np.interp(hits[0], hits[:0:-1], [many, few]))


class Coefficients(Strict):
    """All coefficients of one machine with one set of settings, and those of a GPU if known."""

    format: Literal[5]
    made: str
    machine: Machine
    measured_with: MeasuredWith
    corpus: Corpus
    artefacts: Artefacts
    building: Building
    memory: Memory
    serving: Serving
    gpu: GpuCoefficients | None = None

    @property
    def encoder_threads(self) -> int:
        """Number of encoder threads that had a core of their own."""
        return min(self.measured_with.encoder_threads, self.machine.cpus)

    def with_reply(self, seconds: float, at_once: int) -> Coefficients:
        """Return a copy with the median `seconds` of a model's replies to `at_once` requests."""
        serving = self.serving.model_copy(update={"llm": (typical_point(at_once, seconds),)})
        return self.model_copy(update={"serving": serving})


def write_coefficients(found: Coefficients, path: Path) -> None:
    """Write the coefficients to `path` atomically, as JSON."""
    write_atomically(path, found.model_dump_json(indent=1).encode() + b"\n")


def read_coefficients(path: Path | None) -> Coefficients:
    """Read coefficients from `path`; by default those shipped with CiteRay.

    Raises InputError if the file is missing or invalid.
    """
    origin = f"--calibration {path or 'configs/calibration/laptop.json'}"
    mend = "make one with `citeray plan ... --calibrate`"
    return read_model(Coefficients, path or SHIPPED, origin, mend)


def differences(found: Coefficients, settings: Settings) -> list[str]:
    """Describe the settings that differ from the measured ones, such as `llm was x, now y`."""
    now, was = MeasuredWith.of(settings).model_dump(), found.measured_with.model_dump()
    return [f"{name} was {was[name]}, now {now[name]}" for name in was if was[name] != now[name]]
