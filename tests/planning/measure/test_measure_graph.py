"""Copies of a small FAISS graph."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from cluster.index import vectors
from cluster.index.write_segment import SegmentPlan
from cluster.settings.settings import load_settings
from pipelines.indexing.shards.build_shard import train_quantiser
from pipelines.indexing.staging.plan_build import segment_plan
from planning.measure.measure_graph import copied, measure_hnsw
from planning.measure.sample_corpus import StandIn

SIZE, DIMENSIONS, COUNT = 600, 16, 4


@pytest.fixture(scope="module")
def stand_in() -> StandIn:
    drawn = np.random.default_rng(0).normal(size=(200, DIMENSIONS)).astype(np.float32)
    return StandIn(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def plan(stand_in: StandIn, tmp_path_factory: pytest.TempPathFactory) -> SegmentPlan:
    path = tmp_path_factory.mktemp("graph") / "quantiser.faiss"
    made = segment_plan("x", path, DIMENSIONS, load_settings().index)
    train_quantiser(stand_in.vectors(SIZE), path, made)
    return made


def test_copied_graph_search_matches_exact_search(stand_in: StandIn, plan: SegmentPlan) -> None:
    base = stand_in.vectors(SIZE)
    graph = vectors.build(vectors.load_quantiser(plan.quantiser), [base], 1)
    large = copied(graph, base, plan, COUNT, stand_in, apart=0.3)
    large.hnsw.efSearch = 100
    asked = stand_in.vectors(100, 7)
    _, found = large.search(asked, 10)
    _, exact = faiss.downcast_index(large.storage).search(asked, 10)
    same = [len(set(f) & set(e)) / 10 for f, e in zip(found, exact, strict=True)]
    assert large.ntotal == SIZE * COUNT
    assert np.mean(same) > 0.9
    # The results include rows of all copies.
    assert (found >= SIZE).mean() == pytest.approx(1 - 1 / COUNT, abs=0.1)


def test_cost_of_an_added_passage_is_measured_per_size(
    stand_in: StandIn, plan: SegmentPlan
) -> None:
    found = measure_hnsw(stand_in, plan, SIZE, (1, COUNT))
    assert [n for n, _ in found] == [SIZE / 2, SIZE, SIZE * COUNT]
    assert all(seconds > 0 for _, seconds in found)
