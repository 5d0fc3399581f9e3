"""Functions of the benchmarks that need no graph."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.bench_rewordings import (
    Reply,
    ask_facts,
    find_contradictions,
    print_replies,
    summarise,
)
from benchmarks.bench_systems import local_pubmed, read_corpus, sample_by_type
from benchmarks.smallest import parse_arguments
from cluster.answers import Answer
from pipelines.sample.render_articles import render_articles
from tests.answers.suite import RewordedFact, Wording
from tests.serve.answering import answer
from tests.serve.http_server import free_port
from tests.small_index import citation

SAFE = Wording(ask="Is it safe?", answer="no")
HARMFUL = Wording(ask="Is it harmful?", answer="yes")


def fact(id: str, *wordings: Wording) -> RewordedFact:
    return RewordedFact(id=id, source="sample", pmids=(1,), stated="It harms.", wordings=wordings)


def ask(**answers: Answer) -> list[Reply]:
    """Return the replies to two opposite wordings of one fact."""
    said = {SAFE.ask: answers["safe"], HARMFUL.ask: answers["harmful"]}
    return ask_facts([fact("a", SAFE, HARMFUL)], lambda body: said[body])


def test_same_answer_to_opposite_wordings_is_a_contradiction(
    capsys: pytest.CaptureFixture[str],
) -> None:
    replies = ask(safe=answer(exact="no"), harmful=answer(exact="yes"))
    assert [reply.outcome for reply in replies] == ["right", "right"]
    assert find_contradictions(replies) == []
    withheld = answer(verdict="not_enough_evidence")
    assert find_contradictions(ask(safe=answer(exact="yes"), harmful=withheld)) == []
    assert find_contradictions(ask(safe=answer(exact="yes"), harmful=answer(exact="no"))) == []
    same = ask(safe=answer(exact="yes"), harmful=answer(exact="yes"))
    assert find_contradictions(same) == ["a"]
    print_replies(same)
    assert "1 wrong answers\n  a, right is no: Is it safe?" in capsys.readouterr().out


def test_table_counts_outcomes_by_answer_and_source() -> None:
    replies = ask(safe=answer(exact="yes"), harmful=answer(verdict="mixed"))
    assert summarise(replies).splitlines()[2:] == [
        "| all | 2 | 1 | 0 | 1 | 1 | 0 | 1 |",
        "| answer yes | 1 | 0 | 0 | 0 | 1 | 0 | 1 |",
        "| answer no | 1 | 1 | 0 | 1 | 0 | 0 | 0 |",
        "| sample | 2 | 1 | 0 | 1 | 1 | 0 | 1 |",
    ]


KINDS = ("yesno",) * 40 + ("summary",) * 30 + ("factoid",) * 20 + ("list",) * 10
ROWS = [{"id": str(number), "type": kind} for number, kind in enumerate(KINDS)]


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


def test_pubmed_preset_uses_the_local_server(tmp_path: Path) -> None:
    render_articles([citation(7, "Warfarin inhibits VKORC1.")], tmp_path / "b.xml.gz")
    render_articles([citation(3, "Metformin activates AMPK.")], tmp_path / "a.xml")
    assert [c.pmid for c in read_corpus(tmp_path)] == [3, 7]
    port = free_port()
    with local_pubmed(tmp_path, ["bm25", "sinai"], port) as overrides:
        assert overrides == [f"entrez.base_url=http://127.0.0.1:{port}", "entrez.cache_days=0"]
    with pytest.raises(SystemExit, match="--corpus"), local_pubmed(None, ["sinai"]):
        pass
    with local_pubmed(None, ["bm25", "citeray"]) as overrides:
        assert overrides == []


SMALLEST = "QUESTIONS --limit 2 --set a=1"


def parser() -> ArgumentParser:
    made = ArgumentParser()
    made.add_argument("questions", type=Path)
    made.add_argument("--limit", type=int, default=60)
    made.add_argument("--set", action="append", default=[])
    return made


def test_smallest_option_replaces_arguments(tmp_path: Path) -> None:
    plain = parse_arguments(parser(), SMALLEST, ["file.json"])
    assert (plain.questions, plain.limit, plain.smallest) == (Path("file.json"), 60, None)
    given = parse_arguments(parser(), SMALLEST, ["--smallest", str(tmp_path)])
    assert (given.limit, given.set) == (2, ["a=1"])
    assert tmp_path in given.questions.parents
    # Later arguments are appended. Without a folder, a temporary one is used.
    added = parse_arguments(parser(), SMALLEST, ["--smallest", "--limit", "3", "--set", "b=2"])
    assert (added.limit, added.set) == (3, ["a=1", "b=2"])
    assert added.questions.is_file()
    assert len(json.loads(given.questions.read_text())["questions"]) == 40
