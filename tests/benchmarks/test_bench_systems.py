"""Questions and PubMed server of the preset table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.bench_systems import local_pubmed, read_corpus, sample_by_type
from pipelines.sample.render_articles import render_articles
from tests.serve.http_server import free_port
from tests.small_index import citation

KINDS = ("yesno",) * 40 + ("summary",) * 30 + ("factoid",) * 20 + ("list",) * 10
ROWS = [{"id": str(number), "type": kind} for number, kind in enumerate(KINDS)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    render_articles([citation(7, "Warfarin inhibits VKORC1.")], tmp_path / "b.xml.gz")
    render_articles([citation(3, "Metformin activates AMPK.")], tmp_path / "a.xml")
    return tmp_path


def test_sample_keeps_type_shares_and_order() -> None:
    drawn = sample_by_type(ROWS, 10, 0)
    assert Counter(row["type"] for row in drawn) == {
        "yesno": 4, "summary": 3, "factoid": 2, "list": 1
    }  # fmt: skip
    places = [int(row["id"]) for row in drawn]
    assert places == sorted(places)
    assert sample_by_type(ROWS, 10, 1) == sample_by_type(ROWS, 10, 1)
    assert sample_by_type(ROWS, 10, 1) != sample_by_type(ROWS, 10, 2)
    for limit in (None, 100, 1000):
        assert sample_by_type(ROWS, limit, 0) == ROWS


def test_pubmed_preset_uses_the_local_server(corpus: Path) -> None:
    assert [c.pmid for c in read_corpus(corpus)] == [3, 7]
    port = free_port()
    with local_pubmed(corpus, ["bm25", "sinai"], port) as overrides:
        assert overrides == [f"entrez.base_url=http://127.0.0.1:{port}", "entrez.cache_days=0"]
    with pytest.raises(SystemExit, match="--corpus"), local_pubmed(None, ["sinai"]):
        pass
    with local_pubmed(None, ["bm25", "citeray"]) as overrides:
        assert overrides == []
