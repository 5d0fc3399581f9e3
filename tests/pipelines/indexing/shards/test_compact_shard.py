import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import faiss
import numpy as np
import pytest

from cluster.errors import IndexFormatError, InputError
from cluster.index import vectors
from cluster.index.layout import (
    CITATIONS,
    PASSAGES,
    TERM_COUNTS,
    TERMS,
    TOKENS,
    VECTORS,
    graph_file,
    segment_directory,
    vocabulary_file,
)
from cluster.index.manifest import SegmentEntry, check_artefact, read_manifest
from cluster.index.versions import read_as_of
from pipelines.indexing.shards.build_shard import build_graph, build_shard, train_quantiser
from pipelines.indexing.shards.compact_shard import (
    MOST_SEGMENTS,
    compact_graph,
    compact_shard,
    prune,
    tail_to_merge,
)
from pipelines.indexing.staging.plan_build import quantiser_of, segment_plan
from pipelines.indexing.staging.stage_citations import staged_ranges
from pipelines.verify.verify_index import verify_index
from tests.pipelines.histories import SMALL, File, SmallIndex, deletes, lengths, live, name_of
from tests.pipelines.indexing.shards.test_update_shard import built, counts, titles
from tests.pipelines.test_update_histories import scores
from tests.small_index import CODEC, DIMENSIONS

pytestmark = pytest.mark.slow

HISTORY: list[File] = [
    [(pmid, f"aspirin study {pmid}") for pmid in range(1, 30)],
    [(3, "warfarin"), (4, None), (40, "heparin")],
    [(4, "back again"), (5, None), (40, "heparin and aspirin")],
]


@pytest.mark.parametrize("kind", ["flat", "fp16", "sq8"])
def test_compaction_preserves_search_results(tmp_path: Path, kind: str) -> None:
    index = built(tmp_path, *HISTORY, vectors=kind)
    sides = ("citations", "passages")
    before = {over: scores(index, "aspirin warfarin", over) for over in sides}
    index.compact()
    for over, expected in before.items():
        assert len(expected) == 29
        assert scores(index, "aspirin warfarin", over) == {
            pmid: pytest.approx(score, rel=1e-6) for pmid, score in expected.items()
        }


@pytest.mark.parametrize("kind", ["flat", "fp16", "sq8"])
def test_reconstructed_vectors_get_the_same_codes(kind: str) -> None:
    """One dimension has a narrow range far from 0, which 16-bit floats cannot represent."""
    sample, data = np.random.default_rng(4).normal(size=(2, 300, 16)).astype(np.float32)
    for rows in (sample, data):
        rows[:, 3] = 7 + rows[:, 3] * 1e-4
        rows[:, 5] = 1
    codes = []
    for _ in range(2):
        index = vectors.empty_index(kind, 16, 8, 32)
        index.train(sample)
        vectors.build(index, [data], 1)
        storage = faiss.downcast_index(index.storage)
        codes.append(faiss.vector_to_array(storage.codes))
        data = storage.reconstruct_n(0, 300)
    np.testing.assert_array_equal(codes[0], codes[1])


def test_compacted_shard_has_one_segment_and_keeps_deletions(tmp_path: Path) -> None:
    index = built(tmp_path, *HISTORY, shards=2)
    before, path = counts(index), tmp_path / vocabulary_file("v000003")
    manifest = index.compact()
    assert [len(shard.segments) for shard in manifest.shards] == [1, 1]
    assert sum(s.citations for s in manifest.segments) == manifest.citations == 29
    assert sum(s.passages for s in manifest.segments) == manifest.passages
    assert (tmp_path / vocabulary_file("v000004")).read_bytes() == path.read_bytes()
    check_artefact(tmp_path / vocabulary_file("v000004"), manifest.vocabulary)
    # A shard that already has one segment is unchanged.
    assert index.compact().shards == manifest.shards
    assert counts(index) == before == (29, 3, 1)
    index.update([[(5, None)]])
    assert counts(index) == before
    index.update([[(5, "revived")]])
    assert titles(index)[5] == "revived"
    assert counts(index) == (30, 4, 0)


def test_daily_updates_leave_few_segments_and_equal_a_fresh_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Flushing the files of many versions to a busy disk takes minutes.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    dice = random.Random(3)
    texts = ["aspirin", "warfarin bleeding", "heparin", "v2 iron", "", None, None, "-v1", "-v2"]
    first: File = [(pmid, f"aspirin study {pmid}") for pmid in range(1, 60)]
    # Few PMIDs, so that some come, go and come again within one file and in several.
    days: list[File] = [
        [(dice.randint(52, 67), dice.choice(texts)) for _ in range(dice.choice([1, 4, 9]))]
        for _ in range(20)
    ]
    days[3:3] = [[(68, "came"), (68, None), (69, "came"), (69, None)], [(69, "again")]]
    index = SmallIndex(tmp_path / "index", shards=1, overrides=SMALL)
    index.build([first])
    for day in days:
        [shard] = index.update([day]).shards
        assert len(shard.segments) <= MOST_SEGMENTS
    fresh = SmallIndex(tmp_path / "fresh", shards=1, overrides=SMALL)
    fresh.build([first, *days])
    found = index.citations(range(1, 70))
    expected = live([first, *days])
    assert {pmid: f.citation for pmid, f in found.items()} == expected
    recorded = {pmid for day in [first, *days] for pmid, text in day if not deletes(text)}
    citations, _, deleted = counts(index)
    assert (citations, deleted) == (len(expected), len(recorded) - len(expected))
    assert found == fresh.citations(range(1, 70))
    assert counts(index) == counts(fresh)
    assert lengths(index.manifest, "citations") == lengths(fresh.manifest, "citations")
    terms = ["aspirin", "bleeding", "iron", "trial", "heparin"]
    for table in ("citations", "passages"):
        frequencies = [i.readers()[0].frequencies(terms, table) for i in (index, fresh)]
        assert frequencies[0] == frequencies[1]
    # The limit of a search applies to each segment, so that several segments return more.
    scored = scores(index, "aspirin bleeding", "citations")
    for pmid, score in scores(fresh, "aspirin bleeding", "citations").items():
        assert scored[pmid] == pytest.approx(score, rel=1e-5, abs=1e-6)
    assert verify_index(tmp_path / "index").findings == ()


@pytest.mark.parametrize("sizes", [[470], [30, 300, 500, 5000], [0, 1, 10**5]])
def test_a_year_of_updates_leaves_few_segments(sizes: list[int]) -> None:
    dice = random.Random(7)
    segments, added, written = [600_000], 0, 0
    for _ in range(365):
        size = dice.choice(sizes)
        if count := tail_to_merge(segments, size):
            segments[-count:] = [sum(segments[-count:])]
            written += segments[-1]
        segments.append(size)
        added += size
        assert len(segments) <= MOST_SEGMENTS
    # Each citation is written a logarithmic number of times.
    assert written <= 12 * added


def test_segments_equal_those_whose_graphs_are_written_before(tmp_path: Path) -> None:
    index = SmallIndex(tmp_path / "a", "sq8", overrides=SMALL)
    places, _ = index.stage(HISTORY[:1])
    plan = segment_plan("first", tmp_path / "q.faiss", DIMENSIONS, index.settings.index)
    train_quantiser(staged_ranges(places, DIMENSIONS)[0], plan.quantiser, plan)
    for shard in range(index.shards):
        alone = build_shard(tmp_path / "b", shard, places, plan).entry
        build_graph(index.path, shard, places, plan)
        graph = index.path / graph_file(shard, plan.id)
        assert same(build_shard(index.path, shard, places, plan, graph).entry, alone)
    index.build(HISTORY[:1])
    for events in HISTORY[1:]:
        index.update([events])
    shutil.copytree(index.path, tmp_path / "c")
    plan = replace(plan, quantiser=quantiser_of(index.path, index.manifest))
    for shard, before in enumerate(index.manifest.shards):
        alone = compact_shard(tmp_path / "c", shard, before, plan, CODEC)
        compact_graph(index.path, shard, before, plan)
        graph = index.path / graph_file(shard, alone.id)
        assert same(compact_shard(index.path, shard, before, plan, CODEC, graph), alone)
    # A graph of other passages is refused.
    with pytest.raises(IndexFormatError, match="vectors for"):
        build_shard(tmp_path / "d", 1, places, plan, index.path / graph_file(0, "first"))


def same(one: SegmentEntry, other: SegmentEntry) -> bool:
    """Return whether two segments are equal, apart from the random names of tantivy's files."""
    files = (CITATIONS, PASSAGES, TOKENS, TERMS, TERM_COUNTS, VECTORS)
    return all(one.artefacts[file] == other.artefacts[file] for file in files)


def test_damage_is_detected_before_compaction(tmp_path: Path) -> None:
    index = built(tmp_path, *HISTORY)
    path = tmp_path / segment_directory(0, index.manifest.segments[1].id) / VECTORS
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(IndexFormatError, match=r"vectors\.faiss"):
        index.compact()
    assert read_manifest(tmp_path) == index.manifest


def finished(folder: Path) -> SmallIndex:
    """Return an index after three runs and a compaction, without staging."""
    index = built(folder, *HISTORY)
    index.compact()
    shutil.rmtree(folder / "staging")
    return index


def test_pruning_keeps_only_the_current_version(tmp_path: Path) -> None:
    index = finished(tmp_path)
    before = titles(index)
    earlier = index.citations([4], read_as_of(tmp_path, name_of(1)))
    assert earlier[4].citation.title == "aspirin study 4"
    assert index.citations([4], read_as_of(tmp_path, name_of(2))) == {}
    (tmp_path / "segments/0000/.abc.partial").mkdir()
    removed = prune(tmp_path, index.manifest)
    assert len([path for path in removed if path.startswith("segments/")]) == 4
    assert len(list((tmp_path / "segments").glob("*/*"))) == 1
    assert len(list((tmp_path / "versions").iterdir())) == 5
    assert titles(index) == before
    assert read_manifest(tmp_path) == read_as_of(tmp_path, name_of(3)) == index.manifest
    assert prune(tmp_path, index.manifest) == []
    with pytest.raises(InputError, match=rf"v000002 of .*ends with {name_of(2)}, was pruned"):
        read_as_of(tmp_path, name_of(2))
    index.update([[(2, "revised")]])
    assert titles(index)[2] == "revised"


def test_prune_is_refused_while_staging_exists(tmp_path: Path) -> None:
    index = built(tmp_path, *HISTORY)
    with pytest.raises(InputError, match="staging: a build or update was interrupted"):
        prune(tmp_path, index.manifest)
    assert (tmp_path / "versions/v000001.json").is_file()
