from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cluster.arrow_records import CITATION_SCHEMA, citation_from_row
from cluster.index import vectors
from cluster.index.layout import (
    CITATIONS,
    PASSAGES,
    TERM_COUNTS,
    VECTORS,
    segment_directory,
    shard_of,
)
from cluster.index.manifest import ShardEntry
from cluster.index.read_shard import ShardReader
from cluster.index.write_segment import SegmentPlan
from cluster.records import Citation
from cluster.storage.locations import StoredLocation
from cluster.storage.whole_files import sha256_of
from pipelines.indexing.shards.build_shard import (
    ShardSummary,
    build_shard,
    read_staged,
    train_quantiser,
)
from pipelines.indexing.staging.stage_citations import read_parts, staged_ranges
from pipelines.vocabulary.mine_vocabulary import read_counts
from tests.faults.memory_store import MemoryStore
from tests.pipelines.staging import stage
from tests.small_index import DIMENSIONS, citation

pytestmark = pytest.mark.slow

FIRST = [citation(pmid, f"Protein {pmid} binds gene {pmid % 7}.") for pmid in range(1, 41)]


def plan_in(folder: Path, kind: str = "flat", segment: str = "segment") -> SegmentPlan:
    return SegmentPlan(
        id=segment,
        quantiser=folder / "quantiser.faiss",
        dimensions=DIMENSIONS,
        bm25_over=("citations", "passages"),
        vectors=kind,
        hnsw_m=8,
        ef_construction=32,
        threads=1,
    )


def build(folder: Path, directories: Sequence[Path], shards: int = 1) -> list[ShardSummary]:
    plan = plan_in(folder)
    train_quantiser(staged_ranges(directories, DIMENSIONS)[0], plan.quantiser, plan)
    return [build_shard(folder, s, directories, plan) for s in range(shards)]


def live(directories: Sequence[Path]) -> list[Citation]:
    batches = read_staged(directories, 0).batches()
    rows = [row for batch in batches for row in batch.select(CITATION_SCHEMA.names).to_pylist()]
    return [citation_from_row(row) for row in rows]


def test_latest_record_wins_and_superseded_ones_are_counted(tmp_path: Path) -> None:
    first = [citation(5, "old", keywords=("old keyword",)), citation(1, "x"), citation(1, "kept")]
    a = stage(tmp_path / "a", first, shards=1)
    b = stage(tmp_path / "b", [citation(5, "new", keywords=("new keyword",))], shards=1)
    assert [(c.pmid, c.abstract) for c in live([a, b])] == [(1, "kept"), (5, "new")]
    assert [c.abstract for c in live([b, a])] == ["kept", "old"]
    (summary,) = build(tmp_path, [a, b])
    assert (summary.entry.citations, summary.superseded, summary.deleted) == (2, 2, 0)
    # Only live citations count in term statistics.
    counted = read_counts(tmp_path / segment_directory(0, "segment") / TERM_COUNTS).table
    assert counted.column("form").to_pylist() == ["new keyword"]


def test_duplicate_part_is_counted_once(tmp_path: Path) -> None:
    once = stage(tmp_path / "a/n1", FIRST, shards=1)
    thrice = stage(tmp_path / "b/n1", FIRST, shards=1, copies=3)
    (wanted,) = build(tmp_path / "a", [once])
    (found,) = build(tmp_path / "b", [thrice])
    assert (found.entry.citations, found.superseded) == (40, 0)
    assert found.entry.terms == wanted.entry.terms
    for name in (CITATIONS, PASSAGES, VECTORS):
        assert found.entry.artefacts[name] == wanted.entry.artefacts[name]


@pytest.mark.parametrize("count", [1, 40])
def test_every_citation_is_in_exactly_one_shard(tmp_path: Path, count: int) -> None:
    directory = stage(tmp_path / "n1", FIRST[:count], shards=4)
    summaries = build(tmp_path, [directory], shards=4)
    for shard, summary in enumerate(summaries):
        entry = ShardEntry(segments=(summary.entry,))
        reader = ShardReader(tmp_path, shard, entry, ef_search=32, exact_below=10**9)
        held = [c.pmid for c in FIRST if reader.citation(c.pmid)]
        assert held == [c.pmid for c in FIRST[:count] if shard_of(c.pmid, 4) == shard]
        assert summary.entry.citations == len(held)


@pytest.mark.parametrize("kind", ["flat", "fp16", "sq8"])
def test_quantiser_equals_one_trained_on_all_vectors_and_no_vector_is_read(
    tmp_path: Path, kind: str
) -> None:
    store, opened, sums = MemoryStore(), Counter(), []
    with store.in_place():
        for shards in (1, 3):
            root = StoredLocation.at(f"s3://bucket/{shards}", tmp_path / "cache")
            directories = [
                stage(root / f"n{n}", FIRST[begin : begin + 10], shards=shards)
                for n, begin in enumerate(range(0, 40, 10))
            ]
            scanned = [read_parts(d, s) for d in directories for s in range(shards)]
            blobs = [blob for table in scanned for blob in table.column("vectors").to_pylist()]
            whole = np.frombuffer(b"".join(blobs), np.float16).reshape(-1, DIMENSIONS)
            with store.counting_reads(opened):
                ranges, count = staged_ranges(directories, DIMENSIONS)
            assert count == len(whole)
            for name, sample in (("scan", whole.astype(np.float32)), ("ranges", ranges)):
                plan = plan_in(tmp_path / f"{shards}-{name}", kind)
                train_quantiser(sample, plan.quantiser, plan)
                sums.append(sha256_of(plan.quantiser))
    assert len(set(sums)) == 1
    assert len(opened) == 8
    assert set(opened.values()) == {1}


def test_quantiser_is_written_without_any_vector(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, "sq8")
    train_quantiser(np.empty((0, DIMENSIONS), np.float32), plan.quantiser, plan)
    assert vectors.load(plan.quantiser).is_trained
