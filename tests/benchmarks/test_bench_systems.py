"""What the table of presets asks, and of which PubMed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.bench_systems import keep_questions, local_pubmed, read_corpus, sample_by_type
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


def test_a_sample_has_each_type_by_its_share() -> None:
    kinds = Counter(row["type"] for row in sample_by_type(ROWS, 10, 0))
    assert kinds == {"yesno": 4, "summary": 3, "factoid": 2, "list": 1}


def test_the_same_seed_draws_the_same_questions_and_another_others() -> None:
    assert sample_by_type(ROWS, 10, 1) == sample_by_type(ROWS, 10, 1)
    assert sample_by_type(ROWS, 10, 1) != sample_by_type(ROWS, 10, 2)


def test_a_sample_keeps_the_order_of_the_file() -> None:
    places = [int(row["id"]) for row in sample_by_type(ROWS, 10, 0)]
    assert places == sorted(places)


@pytest.mark.parametrize("limit", [None, 100, 1000])
def test_without_a_smaller_limit_every_question_is_asked(limit: int | None) -> None:
    assert sample_by_type(ROWS, limit, 0) == ROWS


def test_the_sample_is_kept_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dev.json"
    file.write_text(json.dumps({"questions": ROWS}), encoding="utf-8")
    kept = keep_questions(file, tmp_path / "runs", 10, 3)
    assert json.loads(kept.read_text())["questions"] == sample_by_type(ROWS, 10, 3)
    told = "10 questions of dev.json (2 factoid, 1 list, 3 summary, 4 yesno), drawn by seed 3"
    assert told in capsys.readouterr().out


def test_the_corpus_is_read_from_plain_and_packed_files(corpus: Path) -> None:
    assert [c.pmid for c in read_corpus(corpus)] == [3, 7]


def test_a_preset_that_asks_pubmed_is_led_to_the_local_one(corpus: Path) -> None:
    port = free_port()
    with local_pubmed(corpus, ["bm25", "sinai"], port) as overrides:
        assert overrides == [f"entrez.base_url=http://127.0.0.1:{port}", "entrez.cache_days=0"]


def test_without_a_corpus_such_a_preset_is_refused() -> None:
    with pytest.raises(SystemExit, match="--corpus"), local_pubmed(None, ["sinai"]):
        pass


def test_presets_that_ask_no_pubmed_need_no_corpus() -> None:
    with local_pubmed(None, ["bm25", "citeray"]) as overrides:
        assert overrides == []
