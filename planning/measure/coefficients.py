"""Coefficients of a calibration, from which plans are computed; names include units.

"core_seconds" are busy seconds of one core. "seconds" are wall-clock seconds on an idle machine.
Memory is anonymous memory, which the kernel cannot reclaim, unless noted otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from cluster.errors import InputError
from cluster.index.read_shard import limit_of_shard
from cluster.settings.read_config import CONFIGS
from cluster.settings.settings import Settings, Strict
from cluster.storage.whole_files import write_atomically
from planning.error_bar import ErrorBar
from planning.measure.fit import Growth, Heaps, Line, Logarithmic

DEFAULT_FILE = Path(".citeray/calibration.json")
# Assumed ratio of the 95th percentile to the median of a reply that was not measured.
REPLY_SPREAD = 1.5
SHIPPED = CONFIGS / "calibration" / "laptop.json"


class Machine(Strict):
    """The measured machine. `load` is its load average before the calibration."""

    words: str
    cpus: int
    memory_bytes: int
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
    """Properties of the records. `term_rows` gives the distinct terms of n citations."""

    words: str
    sample_citations: int
    source_bytes_per_citation: float
    passages_per_citation: float
    dimensions: int
    term_rows: Heaps


class Artefacts(Strict):
    """Bytes on disk."""

    staging_bytes_per_citation: float
    record_bytes_per_citation: float
    bm25_bytes_per_citation: float
    vector_bytes_per_passage: float
    token_bytes_per_passage: float
    term_count_bytes_per_row: float
    vocabulary_bytes: Line  # By term rows; the base is MeSH.


class Building(Strict):
    """Times of a build; that of HNSW is for adding one passage to a graph of n passages."""

    fixed_seconds: float
    fixed_core_seconds: float
    parse_core_seconds_per_citation: float
    split_core_seconds_per_citation: float
    encode_seconds_per_passage: float
    stage_core_seconds_per_citation: float
    sample_core_seconds_per_citation: float
    train_core_seconds_per_vector: float
    records_core_seconds_per_citation: float
    bm25_core_seconds_per_citation: float
    terms_core_seconds_per_citation: float
    hnsw_core_seconds_per_passage: Growth
    merge_core_seconds_per_row: float
    publish_core_seconds: Line  # By term rows of the version.
    update_core_seconds_per_citation: float
    verify_seconds_per_byte: float


class Memory(Strict):
    """Peak memory by process; resident memory for encode workers, which map their models."""

    driver_bytes: float
    read_worker_bytes: float
    encode_worker_bytes: float
    shard_task_bytes: Line  # By distinct terms of the shard, without its vectors.
    sample_task_base_bytes: float
    sample_task_bytes_per_citation: float
    vocabulary_task_bytes: Line  # By term rows of the version.
    shard_replica_bytes: Line  # By citations of the shard, without mapped files.


class Point(Strict):
    """Latency of a stage with this number of concurrent requests."""

    concurrent: int
    median_seconds: float
    p95_seconds: float


class ShardSearch(Strict):
    """Wall-clock seconds of a search of one of `shards` shards, by the shard's size."""

    shards: int
    dense_seconds: Logarithmic  # By passages of the shard.
    bm25_seconds: Line  # By citations of the shard.
    join_seconds: float

    def at(self, passages: float, citations: float) -> float:
        """Return the seconds for a shard with these numbers of passages and citations."""
        return self.dense_seconds.at(passages) + self.bm25_seconds.at(citations) + self.join_seconds


class Serving(Strict):
    """Seconds of one question, which requests `hits` citations from each search branch."""

    expand: tuple[Point, ...]
    encode: tuple[Point, ...]
    hits: int
    statistics_seconds: float
    searches: tuple[ShardSearch, ShardSearch]  # With few shards, and with many.
    fetch_seconds: float
    shard_p95_over_median: float
    rerank_pairs: int
    rerank: tuple[Point, ...]
    llm: tuple[Point, ...] = ()
    llm_tokens: int = 0
    write: tuple[Point, ...] = ()  # Answer from the evidence, without a language model.

    def search_seconds(self, shards: int, passages: float, citations: float) -> float:
        """Return the seconds of a shard search, interpolated by the hits that a shard returns."""
        hits = [limit_of_shard(self.hits, n) for n in (shards, *(s.shards for s in self.searches))]
        few, many = (s.at(passages, citations) for s in self.searches)
        return float(np.interp(hits[0], hits[:0:-1], [many, few]))


class Coefficients(Strict):
    """All coefficients of one machine with one set of settings.

    `checked` holds the errors of a plan that was compared with a real build.
    """

    format: Literal[4]
    made: str
    machine: Machine
    measured_with: MeasuredWith
    corpus: Corpus
    artefacts: Artefacts
    building: Building
    memory: Memory
    serving: Serving
    checked: ErrorBar | None = None

    @property
    def encoder_threads(self) -> int:
        """Number of encoder threads that had a core of their own."""
        return min(self.measured_with.encoder_threads, self.machine.cpus)

    def with_reply(self, seconds: float, at_once: int) -> Coefficients:
        """Return a copy with the median `seconds` of a model's replies to `at_once` requests."""
        spread = REPLY_SPREAD * seconds
        point = Point(concurrent=at_once, median_seconds=seconds, p95_seconds=spread)
        return self.model_copy(
            update={"serving": self.serving.model_copy(update={"llm": (point,)})}
        )


def write_coefficients(found: Coefficients, path: Path) -> None:
    """Write the coefficients to `path` atomically, as JSON."""
    write_atomically(path, found.model_dump_json(indent=1).encode() + b"\n")


def read_coefficients(path: Path | None) -> Coefficients:
    """Read coefficients from `path`; by default those shipped with CiteRay.

    Raises InputError if the file is missing or invalid.
    """
    origin = str(path or "configs/calibration/laptop.json")
    mend = "make one with `citeray plan ... --calibrate`"
    try:
        text = (path or SHIPPED).read_text(encoding="utf-8")
        return Coefficients.model_validate_json(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--calibration {origin}: cannot be read ({error}); {mend}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(f"--calibration {origin}: {place}: {first['msg']}; {mend}") from error


def differences(found: Coefficients, settings: Settings) -> list[str]:
    """Describe the settings that differ from the measured ones, such as `llm was x, now y`."""
    now, was = MeasuredWith.of(settings).model_dump(), found.measured_with.model_dump()
    return [f"{name} was {was[name]}, now {now[name]}" for name in was if was[name] != now[name]]
