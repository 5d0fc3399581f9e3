"""Orphaned workers of a killed run that write during or after the next run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cluster.index.layout import segment_directory
from cluster.index.manifest import SegmentEntry
from cluster.index.put_segment import read_entry, remove_partials
from cluster.index.write_segment import NONE_DEAD, Dead, SegmentPlan, Written, write_segment
from pipelines.indexing.shards.build_shard import train_quantiser
from pipelines.indexing.staging.embed_passages import embed_citations, split_citations
from tests.pipelines.indexing.shards.test_build_shard import plan_in
from tests.pipelines.staging import SPLITTER
from tests.small_index import DIMENSIONS, citation, embed_words

CITATIONS = [citation(pmid, f"Abstract of {pmid}.") for pmid in range(1, 9)]


def batches() -> list[pa.RecordBatch]:
    table = embed_citations(split_citations(CITATIONS, SPLITTER), embed_words, None)
    found: list[pa.RecordBatch] = table.combine_chunks().to_batches()
    return found


@pytest.fixture
def plan(tmp_path: Path) -> SegmentPlan:
    plan = plan_in(tmp_path, segment="s")
    train_quantiser(np.zeros((1, DIMENSIONS), np.float32), plan.quantiser, plan)
    return plan


def place(index: Path) -> Path:
    return index / segment_directory(0, "s")


def write(index: Path, plan: SegmentPlan) -> SegmentEntry:
    return write_segment(batches(), place(index), plan)


def beside(index: Path) -> list[str]:
    return [p.name for p in place(index).parent.iterdir() if p != place(index)]


def test_concurrent_writers_leave_a_complete_segment(tmp_path: Path, plan: SegmentPlan) -> None:
    def overtaken() -> Iterator[pa.RecordBatch]:
        yield from batches()
        write(tmp_path, plan)

    entry = write_segment(overtaken(), place(tmp_path), plan)
    assert read_entry(place(tmp_path)) == entry
    assert beside(tmp_path) == []


def test_segment_is_not_replaced_while_it_is_read(tmp_path: Path, plan: SegmentPlan) -> None:
    held = []

    def complete(_: Path, __: Written) -> Dead:
        write(tmp_path, plan)
        held.append(place(tmp_path).stat().st_ino)
        return NONE_DEAD

    write_segment(batches(), place(tmp_path), plan, complete)
    assert [place(tmp_path).stat().st_ino] == held


def test_writer_whose_folder_was_removed_writes_nothing(tmp_path: Path, plan: SegmentPlan) -> None:
    def complete(aside: Path, _: Written) -> Dead:
        remove_partials(tmp_path)
        assert not aside.exists()
        return NONE_DEAD

    with pytest.raises(FileNotFoundError):
        write_segment(batches(), place(tmp_path), plan, complete)
    assert not place(tmp_path).exists()


def test_damaged_segment_is_replaced(tmp_path: Path, plan: SegmentPlan) -> None:
    write(tmp_path, plan)
    (place(tmp_path) / "vectors.faiss").write_bytes(b"?")
    assert read_entry(place(tmp_path)) is None
    entry = write(tmp_path, plan)
    assert read_entry(place(tmp_path)) == entry
    # Files of a killed task are removed, and the segment stays.
    shutil.copytree(place(tmp_path), place(tmp_path).with_name(".s.0123.partial"))
    remove_partials(tmp_path)
    assert beside(tmp_path) == []
    assert read_entry(place(tmp_path)) == entry
