"""What a calibration finds, and what a plan is made of: a record with units in its names.

"core_seconds" are seconds of one busy core, whatever else the machine did meanwhile;
"seconds" are of the clock of a machine that does nothing else. "bytes" of memory are
anonymous ones, which cannot be dropped, unless said otherwise.
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
# Assumed of a reply that was not measured: its 95th percentile, by its median.
REPLY_SPREAD = 1.5
SHIPPED = CONFIGS / "calibration" / "laptop.json"


class Machine(Strict):
    """Where it was measured. `load` is the mean number of running processes meanwhile."""

    words: str
    cpus: int
    memory_bytes: int
    device: str
    load: float


class MeasuredWith(Strict):
    """The settings that the figures hold for; those of `encoder` and `index` by their names."""

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
        """The part of `settings` that the figures depend on."""
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
    """What the records are like. `term_rows` are distinct terms of so many citations."""

    words: str
    sample_citations: int
    source_bytes_per_citation: float
    passages_per_citation: float
    dimensions: int
    term_rows: Heaps


class Artefacts(Strict):
    """Bytes on disk. `vectors` and `vector_base` are of one segment's HNSW."""

    staging_bytes_per_citation: float
    record_bytes_per_citation: float
    bm25_bytes_per_citation: float
    vector_bytes_per_passage: float
    token_bytes_per_passage: float
    term_count_bytes_per_row: float
    vocabulary_bytes: Line  # of the term rows; MeSH stands in it whatever the corpus


class Building(Strict):
    """Time. HNSW's is for one more passage in a graph of so many."""

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
    publish_core_seconds: Line  # of the term rows of the version
    update_core_seconds_per_citation: float
    verify_seconds_per_byte: float


class Memory(Strict):
    """Peaks by process. `encode_worker_bytes` is all of its resident memory: models are mapped."""

    driver_bytes: float
    read_worker_bytes: float
    encode_worker_bytes: float
    shard_task_bytes: Line  # of the shard's distinct terms, beside its vectors
    sample_task_base_bytes: float
    sample_task_bytes_per_citation: float
    vocabulary_task_bytes: Line  # of the term rows of the version
    shard_replica_bytes: Line  # of the shard's citations, above what is mapped


class Point(Strict):
    """One way to run a stage: so many requests at once, each done after so long."""

    concurrent: int
    median_seconds: float
    p95_seconds: float


class ShardSearch(Strict):
    """Seconds of the clock of a search of one shard among `shards`, by the shard's size."""

    shards: int
    dense_seconds: Logarithmic  # of the shard's passages
    bm25_seconds: Line  # of the shard's citations
    join_seconds: float

    def at(self, passages: float, citations: float) -> float:
        """Seconds for a shard of so many passages and citations."""
        return self.dense_seconds.at(passages) + self.bm25_seconds.at(citations) + self.join_seconds


class Serving(Strict):
    """Seconds of one question, which wants `hits` citations of each branch of the search."""

    expand: tuple[Point, ...]
    encode: tuple[Point, ...]
    hits: int
    statistics_seconds: float
    searches: tuple[ShardSearch, ShardSearch]  # among few shards, among many
    fetch_seconds: float
    shard_p95_over_median: float
    rerank_pairs: int
    rerank: tuple[Point, ...]
    llm: tuple[Point, ...] = ()
    llm_tokens: int = 0
    write: tuple[Point, ...] = ()  # an answer from the evidence, without a language model

    def search_seconds(self, shards: int, passages: float, citations: float) -> float:
        """Of one of `shards`, each of that size: in between by how many hits it must bring."""
        hits = [limit_of_shard(self.hits, n) for n in (shards, *(s.shards for s in self.searches))]
        few, many = (s.at(passages, citations) for s in self.searches)
        return float(np.interp(hits[0], hits[:0:-1], [many, few]))


class Coefficients(Strict):
    """All that `citeray plan` computes from: figures of one machine with one set of settings.

    `checked` tells how far a plan made from them was off, where a real build has checked them.
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
        """Of those that the encoder was given; a thread without a core was never busy."""
        return min(self.measured_with.encoder_threads, self.machine.cpus)

    def with_reply(self, seconds: float, at_once: int) -> Coefficients:
        """With a language model that nobody measured: its median with `at_once` at work."""
        spread = REPLY_SPREAD * seconds
        point = Point(concurrent=at_once, median_seconds=seconds, p95_seconds=spread)
        return self.model_copy(
            update={"serving": self.serving.model_copy(update={"llm": (point,)})}
        )


def write_coefficients(found: Coefficients, path: Path) -> None:
    """Write them to `path` atomically, as JSON."""
    write_atomically(path, found.model_dump_json(indent=1).encode() + b"\n")


def read_coefficients(path: Path | None) -> Coefficients:
    """Those of `path`; without one, those shipped with CiteRay.

    Raises InputError for a file that is missing, no calibration, or of another format.
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
    """The settings that differ from those that were measured, such as `llm was x, now y`."""
    now, was = MeasuredWith.of(settings).model_dump(), found.measured_with.model_dump()
    return [f"{name} was {was[name]}, now {now[name]}" for name in was if was[name] != now[name]]
