from dataclasses import replace

import pytest

from cluster.index.read_shard import Fetched
from cluster.records import Citation
from cluster.settings.search_settings import RankingsSettings, RecencySettings
from serve.search.rank_by_type import fuse_hits, rankings_for, recent_first
from serve.search.rank_hits import Hit


def hits(*pmids: int, year: int | None = None) -> list[Hit]:
    return [Hit(Fetched(Citation(p, year=year), (), ()), None, 1 / p, {}) for p in pmids]


def test_hits_of_all_rankings_are_fused() -> None:
    # 3: 1/3 + 1 + 1 + 1/3, then 1 and 5: 4/3, then 2 and 4: 1.
    rankings = [hits(1, 2, 3), hits(3, 2, 1), hits(3, 4, 5), hits(5, 4, 3)]
    assert [h.pmid for h in fuse_hits(rankings, k=0)] == [3, 1, 5, 2, 4]


def test_question_of_unknown_type_uses_the_rankings_of_summaries() -> None:
    by_type = {"yesno": ["rewritten"], "list": ["plain"], "factoid": ["plain"]}
    settings = RankingsSettings.model_validate({"by_type": {**by_type, "summary": ["plain"]}})
    assert rankings_for("yesno", settings) == ("rewritten",)
    assert rankings_for("unknown", settings) == ("plain",)


def test_recency_raises_newer_citations() -> None:
    recency = RecencySettings(weight=0.5, half_life=10)
    years: list[int | None] = [2004, 2014, 2024, None]
    found = [replace(hits(n, year=year)[0], score=1.0) for n, year in enumerate(years, 1)]
    weighed = recent_first(found, recency)
    assert [h.pmid for h in weighed] == [3, 2, 1, 4]
    assert [h.score * 1.5 for h in weighed] == pytest.approx([1.5, 1.25, 1.125, 1.0])
    assert recent_first(found, RecencySettings()) == found
