"""Measure the stages of a build on a sample, with the functions of the build itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from cluster.index import vectors
from cluster.index.bm25 import Bm25Writer
from cluster.index.manifest import SegmentEntry, ShardEntry
from cluster.index.write_segment import SegmentPlan
from cluster.records import Citation
from cluster.settings.settings import Settings
from cluster.settings.stages.expander import VocabularySettings
from cluster.storage.object_store import File
from cluster.text.analysis import analyse
from pipelines.indexing.shards.build_shard import (
    ShardSummary,
    build_shard,
)
from pipelines.indexing.shards.update_shard import update_shard
from pipelines.indexing.staging.embed_passages import split_citations
from pipelines.indexing.staging.split_passages import Splitter, split_citation
from pipelines.indexing.staging.stage_citations import part_files
from pipelines.vocabulary.assemble_vocabulary import write_vocabulary
from pipelines.vocabulary.give_names import NameFiles, find_names, given_names
from pipelines.vocabulary.mine_vocabulary import TermCounts, count_terms, merge_counts
from planning.measure.sample_corpus import StandIn, read_sample, stage
from planning.measure.watch_processes import Cost, core_seconds, in_fresh_process

if TYPE_CHECKING:
    from cluster.models.encoder import Encoder

Result = TypeVar("Result")
BATCH = 256


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median wall-clock seconds of `repeats` runs."""
    spent = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begun)
    return median(spent)


@dataclass(frozen=True, slots=True)
class Read:
    """The parsed and split sample, with the cost of parsing and splitting per citation."""

    citations: list[Citation]
    table: pa.Table
    source_bytes: float
    parse_core_seconds: float
    split_core_seconds: float


def measure_reading(files: Sequence[File], count: int, splitter: Splitter) -> Read:
    """Parse and split the first `count` citations of `files`, and time both."""
    (citations, total), parse_s = core_seconds(lambda: read_sample(files, count))
    batches = [citations[at : at + BATCH] for at in range(0, len(citations), BATCH)]
    tables, split_s = core_seconds(lambda: [split_citations(b, splitter) for b in batches])
    size = sum(path.stat().st_size for path in files) / total
    table = pa.concat_tables(tables)
    return Read(citations, table, size, parse_s / total, split_s / len(citations))


def first_passages(citations: Sequence[Citation], splitter: Splitter, count: int) -> list[str]:
    """Return the texts of the first citations' passages, at least `count` if there are enough."""
    texts: list[str] = []
    for citation in citations:
        texts += [passage.text for passage in split_citation(citation, splitter)]
        if len(texts) >= count:
            break
    return texts


def measure_encoding(
    encoder: Encoder, texts: Sequence[str], repeats: int, threads: int
) -> tuple[vectors.Vectors, float]:
    """Encode passages as a build does; return their vectors and the seconds per passage.

    On a CPU, use the busy core time divided by the threads if it is less than the wall-clock time,
    which includes waiting on a shared machine.
    """
    encoder.encode(texts[: encoder.batch_size])
    seconds = median_seconds(lambda: encoder.encode(texts), repeats)
    found, busy = core_seconds(lambda: encoder.encode(texts))
    if encoder.device == "cpu":
        seconds = min(seconds, busy / threads)
    return found, seconds / len(texts)


@dataclass(frozen=True, slots=True)
class Staged:
    """A staged sample, with the vectors of its passages."""

    directory: Path
    vectors: vectors.Vectors
    core_seconds: float

    @property
    def bytes(self) -> int:
        """Bytes of the staged files on disk."""
        return sum(path.stat().st_size for path in part_files(self.directory))


def measure_staging(read: Read, count: int, stand_in: StandIn, directory: Path) -> Staged:
    """Stage the first `count` citations in `directory`, with stand-in vectors, and time it."""
    directory.mkdir(parents=True)
    table = read.table.slice(0, count)
    found = stand_in.vectors(sum(map(len, table.column("spans").to_pylist())))
    _, spent = core_seconds(lambda: stage(table, directory, stand_in, found))
    return Staged(directory, found, spent)


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment built from the first citations of the sample, and its cost."""

    index: Path
    staged: Staged
    build: Cost[ShardSummary]

    @property
    def entry(self) -> SegmentEntry:
        """The manifest entry of the built segment."""
        return self.build.result.entry

    def bytes_of(self, *prefixes: str) -> int:
        """Return the bytes of the segment's files whose names begin with any of `prefixes`."""
        found = self.entry.artefacts.items()
        return sum(entry.bytes for name, entry in found if name.startswith(prefixes))


def measure_segment(staged: Staged, plan: SegmentPlan, index: Path) -> Segment:
    """Build one shard from the staged sample in a new process."""
    return Segment(index, staged, in_fresh_process(build_shard, index, 0, [staged.directory], plan))


def measure_bm25(
    citations: Sequence[Citation], splitter: Splitter, over: Sequence[str], scratch: Path
) -> float:
    """Return the core seconds per citation of writing the postings."""

    def write() -> None:
        for side in over:
            writer = Bm25Writer(scratch / side)
            for citation in citations:
                texts = [citation.search_text]
                if side == "passages":
                    texts = [passage.text for passage in split_citation(citation, splitter)]
                for text in texts:
                    writer.add(text)
                    analyse(text)
            writer.close()

    return core_seconds(write)[1] / len(citations)


@dataclass(frozen=True, slots=True)
class Terms:
    """Distinct terms by number of citations, and the cost of counting and merging them."""

    points: list[tuple[float, float]]
    parts: list[TermCounts]
    core_seconds_per_citation: float
    merge_core_seconds_per_row: float


def measure_terms(citations: Sequence[Citation]) -> Terms:
    """Count the terms of the first 1/4, 2/4, 3/4 and 4/4 of the citations, and time it."""
    size = -(-len(citations) // 4)
    parts, counting_s = core_seconds(
        lambda: [count_terms(citations[at : at + size]) for at in range(0, len(citations), size)]
    )
    firsts = [parts[: n + 1] for n in range(len(parts))]
    merged, merging_s = core_seconds(lambda: [merge_counts(some) for some in firsts])
    rows = sum(len(part) for some in firsts for part in some)
    points = [
        (float(min((n + 1) * size, len(citations))), float(len(m))) for n, m in enumerate(merged)
    ]
    return Terms(points, parts, counting_s / len(citations), merging_s / max(rows, 1))


@dataclass(frozen=True, slots=True)
class Published:
    """A vocabulary written from `rows` counted terms, and its cost."""

    path: Path
    rows: int
    cost: Cost[int]

    @property
    def bytes(self) -> int:
        """Size of the file on disk."""
        return self.path.stat().st_size


def measure_publishing(parts: Sequence[TermCounts], settings: Settings, path: Path) -> Published:
    """Write the vocabulary of `parts` as the last step of a build does, and time it."""
    chosen = settings.vocabulary
    cost = in_fresh_process(_publish, parts, find_names(chosen), chosen, path)
    return Published(path, cost.result, cost)


def _publish(
    parts: Sequence[TermCounts], names: NameFiles, chosen: VocabularySettings, path: Path
) -> int:
    """Write the vocabulary and return its number of terms."""
    counts = merge_counts(parts)
    given = given_names(names, chosen.umls_types)
    write_vocabulary(counts, given, path, min_citations=chosen.abbreviation_min_citations)
    return len(counts)


def measure_update(base: Segment, change: Staged, plan: SegmentPlan) -> float:
    """Return the core seconds per citation of an update that only replaces citations."""
    before = ShardEntry(segments=(base.entry,))
    cost = in_fresh_process(update_shard, base.index, 0, before, [change.directory], plan)
    replaced = cost.result.entry.citations if cost.result else 1
    return cost.core_seconds / replaced
