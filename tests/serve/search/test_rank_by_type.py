import asyncio
from collections.abc import Sequence

import pytest

from cluster.answers import QuestionType
from cluster.index.read_shard import Fetched
from cluster.records import Citation
from cluster.settings.search_settings import RankingsSettings, RecencySettings
from serve.search.rank_by_type import rank_by_type, recent_first
from serve.search.rank_hits import Hit

RANKINGS = RankingsSettings(
    by_type={
        "yesno": ("rewritten-reranked",),
        "list": ("rewritten", "rewritten-reranked"),
        "factoid": ("plain", "plain-reranked", "rewritten", "rewritten-reranked"),
        "summary": ("plain",),
    }
)


def hits(*pmids: int, year: int | None = None) -> list[Hit]:
    return [Hit(Fetched(Citation(p, year=year), (), ()), None, 1 / p, {}) for p in pmids]


def rank(kind: QuestionType) -> tuple[list[int], list[str]]:
    """(order, what was done for it): plain finds 1 2 3, rewritten 3 4 5, the reranker reverses."""
    done: list[str] = []

    async def find(rewritten: bool) -> list[Hit]:
        done.append("rewritten" if rewritten else "plain")
        return hits(3, 4, 5) if rewritten else hits(1, 2, 3)

    async def rerank(found: Sequence[Hit]) -> list[Hit]:
        done.append("rerank")
        return list(found)[::-1]

    ranked = asyncio.run(rank_by_type(kind, RANKINGS, find, rerank))
    return [h.pmid for h in ranked], done


@pytest.mark.parametrize(
    ("kind", "order", "done"),
    [
        ("summary", [1, 2, 3], ["plain"]),
        ("unknown", [1, 2, 3], ["plain"]),
        ("yesno", [5, 4, 3], ["rewritten", "rerank"]),
        # 3: 1 + 1/3, 5: 1/3 + 1, 4: 1/2 + 1/2.
        ("list", [3, 5, 4], ["rewritten", "rerank"]),
        # 3: 1/3 + 1 + 1 + 1/3, then 1 and 5: 4/3, then 2 and 4: 1.
        ("factoid", [3, 1, 5, 2, 4], ["plain", "rerank", "rewritten", "rerank"]),
    ],
)
def test_a_type_has_its_rankings_fused_and_no_others_made(
    kind: QuestionType, order: list[int], done: list[str]
) -> None:
    assert rank(kind) == (order, done)


def test_recent_citations_rise_where_years_have_a_weight() -> None:
    old, new = hits(1, year=1990)[0], hits(2, year=2020)[0]
    weighed = recent_first([old, new], RecencySettings(weight=2, half_life=5))
    assert [h.pmid for h in weighed] == [2, 1]
    assert weighed[0].score == 1
    assert recent_first([old, new], RecencySettings()) == [old, new]
