import numpy as np

from cluster.index.bm25 import Bm25Query
from cluster.index.read_shard import Fetched
from cluster.records import Citation, Passage
from cluster.settings.search_settings import FusionSettings, RetrieverSettings
from cluster.text.analysis import ANALYSER
from serve.search.fuse_scores import Fused
from serve.search.rank_hits import (
    Hit,
    citation_hits,
    first_per_citation,
    merge_hits,
    passage_hits,
    rescored,
)

BY_BM25 = FusionSettings(method="weighted", dense=0, bm25=1)


def fetched(pmid: int, *texts: str, dense: tuple[float, ...] = (), title: str = "") -> Fetched:
    passages = [Passage(pmid, "title", 0, len(title), title)] if title else []
    passages += [Passage(pmid, "abstract", n, n + len(t), t) for n, t in enumerate(texts)]
    scores = dense or tuple(0.0 for _ in passages)
    return Fetched(Citation(pmid, title=title), tuple(passages), scores)


def fused(*pmids: int) -> Fused:
    scores = np.linspace(1, 0.5, len(pmids), dtype=np.float32)
    return Fused(np.asarray(pmids, np.int64), scores, scores, scores)


def hit(pmid: int, score: float, position: int = 0, *, alone: bool = False) -> Hit:
    return Hit(fetched(pmid, "One.", "Two."), position, score, {}, alone)


def bm25(term: str) -> Bm25Query:
    return Bm25Query({term: 1.0}, {term: 1}, 10, 2.0, 0.9, 0.4)


def test_hit_text_includes_the_title_unless_it_is_a_single_passage() -> None:
    of = fetched(1, "Body.", title="Title")
    assert Hit(of, 1, 1.0, {}).text == "Title Body."
    assert Hit(of, 1, 1.0, {}, alone=True).text == "Body."


def test_citations_that_were_not_fetched_are_left_out() -> None:
    assert [h.pmid for h in citation_hits(fused(1, 2, 3), 3, [fetched(3), fetched(1)])] == [1, 3]


def test_passages_are_ranked_over_all_citations() -> None:
    held = [fetched(1, "a", "b", dense=(0.2, 0.9)), fetched(2, "c", "d", dense=(0.5, 0.1))]
    retrieve = RetrieverSettings(dense=3, bm25=0)
    hits = passage_hits(
        fused(1, 2), held, None, retrieve, FusionSettings(method="weighted"), ANALYSER
    )
    assert [(h.pmid, h.place) for h in hits] == [(1, 1), (2, 0), (1, 0)]


def test_passages_are_ranked_by_their_own_bm25_scores() -> None:
    retrieve = RetrieverSettings(dense=0, bm25=5, bm25_over="passages")
    held = [fetched(1, "mouse mouse", "rat"), fetched(2, "rat mouse")]
    hits = passage_hits(fused(1, 2), held, bm25("rat"), retrieve, BY_BM25, ANALYSER)
    assert [(h.pmid, h.place) for h in hits] == [(1, 1), (2, 0)]
    held = [fetched(1, "rat", title="rat rat"), fetched(2, title="rat")]
    hits = passage_hits(fused(1, 2), held, bm25("rat"), retrieve, BY_BM25, ANALYSER)
    assert sorted(h.fetched.passages[h.place or 0].section for h in hits) == ["abstract", "title"]


def test_merge_hits_keeps_the_best_score_of_each_hit() -> None:
    both = merge_hits([[hit(1, 0.4), hit(2, 0.3)], [hit(2, 0.9), hit(3, 0.4)]])
    assert [(h.pmid, h.score) for h in both] == [(2, 0.9), (1, 0.4), (3, 0.4)]


def test_first_per_citation_keeps_the_first_passage() -> None:
    both = merge_hits([[hit(1, 0.4, 0, alone=True)], [hit(1, 0.3, 1, alone=True)]])
    assert [h.place for h in both] == [0, 1]
    assert [h.place for h in first_per_citation(both)] == [0]
    ranked = [hit(pmid, 1, alone=True) for pmid in (1, 2, 3, 2, 1)]
    assert [h.pmid for h in first_per_citation(ranked)] == [1, 2, 3]


def test_rescored_divides_by_the_maximum() -> None:
    for scores, scaled in [((4, 2), [1, 0.5]), ((0, -1), [0, 0])]:
        assert [h.score for h in rescored([hit(1, 9), hit(2, 9)], scores)] == scaled
