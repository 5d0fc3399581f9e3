import numpy as np
import pytest

from cluster.index.read_shard import Candidates
from cluster.settings.search_settings import FusionSettings, RetrieverSettings
from serve.search.fuse_scores import fuse, fuse_rankings, rerank_order, scaled

BOTH = RetrieverSettings(dense=10, bm25=10)


def candidates(*rows: tuple[int, float, float, bool, bool]) -> Candidates:
    """Rows of (pmid, dense, bm25, found by dense, found by BM25)."""
    pmids, dense, bm25, by_dense, by_bm25 = zip(*rows, strict=True)
    return Candidates(
        np.asarray(pmids, np.int64),
        np.asarray(dense, np.float32),
        np.asarray(bm25, np.float32),
        np.asarray(by_dense),
        np.asarray(by_bm25),
    )


def test_weighted_fusion_adds_scores_divided_by_their_maximum() -> None:
    found = candidates((1, 0.8, 0.0, True, False), (2, 0.4, 10.0, True, True))
    fused = fuse(found, BOTH, FusionSettings(method="weighted", dense=0.5, bm25=0.5))
    # 2: 0.5 * 0.4/0.8 + 0.5 * 10/10 = 0.75; 1: 0.5 * 1 + 0 = 0.5; both divided by 0.75.
    assert fused.pmids.tolist() == [2, 1]
    assert fused.score.tolist() == pytest.approx([1.0, 2 / 3])


def test_rrf_adds_reciprocal_ranks() -> None:
    found = candidates(
        (1, 0.9, 1.0, True, True), (2, 0.8, 3.0, True, True), (3, 0.7, 2.0, True, True)
    )
    fused = fuse(found, BOTH, FusionSettings(method="rrf", dense=1, bm25=1, rrf_k=60))
    # 1: 1/61 + 1/63, 2: 1/62 + 1/61, 3: 1/63 + 1/62.
    assert fused.pmids.tolist() == [2, 1, 3]
    assert fused.score[1] == pytest.approx((1 / 61 + 1 / 63) / (1 / 62 + 1 / 61))


def test_each_branch_is_cut_to_its_limit_over_all_shards() -> None:
    weighted = FusionSettings(method="weighted")
    found = candidates(
        (1, 0.9, 0.0, True, False), (2, 0.8, 0.0, True, False), (3, 0.1, 5.0, False, True)
    )
    fused = fuse(found, RetrieverSettings(dense=1, bm25=1), weighted)
    assert sorted(fused.pmids.tolist()) == [1, 3]
    # With the limit 0, a branch is ignored.
    found = candidates((1, 0.9, 1.0, False, True), (2, 0.1, 2.0, False, True))
    fused = fuse(found, RetrieverSettings(dense=0, bm25=5), weighted)
    assert fused.pmids.tolist() == [2, 1]
    assert fused.score.tolist() == pytest.approx([1.0, 0.5])


def test_ties_go_to_the_lower_pmid_in_any_shard_order() -> None:
    weighted = FusionSettings(method="weighted")
    found = candidates((8, 0.5, 1.0, True, True), (4, 0.5, 1.0, True, True))
    assert fuse(found, BOTH, weighted).pmids.tolist() == [4, 8]
    rows = [(i, 1 / i, float(i % 3), True, i % 2 == 0) for i in range(1, 9)]
    one, other = (fuse(candidates(*order), BOTH, weighted) for order in (rows, rows[::-1]))
    assert one.pmids.tolist() == other.pmids.tolist()


def test_negative_scores_become_zero() -> None:
    assert scaled(np.asarray([-1.0, 0.5], np.float32)).tolist() == [0.0, 1.0]
    assert scaled(np.asarray([-1.0, -2.0], np.float32)).tolist() == [0.0, 0.0]


def test_reranking_mixes_both_scores_by_weight() -> None:
    assert rerank_order([1.0, 0.5], [0.2, 0.4], 0.5) == pytest.approx([0.75, 0.75])
    assert rerank_order([1.0, 0.5], [0.2, 0.4], 1.0) == pytest.approx([0.5, 1.0])
    assert rerank_order([1.0, 0.5], [0.2, 0.4], 0.0) == pytest.approx([1.0, 0.5])


def test_rankings_are_fused_by_reciprocal_rank() -> None:
    fused = fuse_rankings([[1, 2, 3], [3, 1]])
    # 1: 1/1 + 1/2, 3: 1/3 + 1/1, 2: 1/2.
    assert list(fused) == [1, 3, 2]
    assert fused[1] == pytest.approx(1.5)
    assert fuse_rankings([[1, 2]], k=60)[1] == pytest.approx(1 / 61)
    # A repeated PMID counts once; ties go to the lower PMID.
    assert fuse_rankings([[7, 7, 8]]) == {7: 1.0, 8: 0.5}
    assert list(fuse_rankings([[9, 4], [4, 9]])) == [4, 9]
