from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path

import pytest

from benchmarks.smallest import TEXTS, Inputs, parse_arguments
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from pipelines.build.find_sources import find_sources

SMALLEST = "QUESTIONS --limit 2 --set a=1"


def parser() -> ArgumentParser:
    made = ArgumentParser()
    made.add_argument("questions", type=Path)
    made.add_argument("--limit", type=int, default=60)
    made.add_argument("--set", action="append", default=[])
    return made


def test_smallest_replaces_the_arguments_and_fills_in_its_inputs(tmp_path: Path) -> None:
    given = parse_arguments(parser(), SMALLEST, ["--smallest", str(tmp_path)])
    assert (given.limit, given.set) == (2, ["a=1"])
    assert tmp_path in given.questions.parents
    # Arguments after it are added; without a folder it uses a temporary one.
    added = parse_arguments(parser(), SMALLEST, ["--smallest", "--limit", "3", "--set", "b=2"])
    assert (added.limit, added.set) == (3, ["a=1", "b=2"])
    assert added.questions.is_file()
    assert len(json.loads(given.questions.read_text())["questions"]) == 40


def test_other_arguments_are_parsed_as_usual(capsys: pytest.CaptureFixture[str]) -> None:
    given = parse_arguments(parser(), SMALLEST, ["file.json"])
    assert (given.questions, given.limit, given.smallest) == (Path("file.json"), 60, None)
    with pytest.raises(SystemExit):
        parse_arguments(parser(), SMALLEST, [])
    assert "required: questions" in capsys.readouterr().err


def test_texts_hold_title_and_abstract_of_sample_citations(tmp_path: Path) -> None:
    inputs = Inputs(tmp_path)
    rows = [json.loads(line) for line in Path(inputs.texts()[0]).read_text().splitlines()]
    records = [r for path in find_sources(inputs.corpus()) for r in read_records(path)]
    known = {r.pmid: r.search_text for r in records if isinstance(r, Citation)}
    assert len(rows) == TEXTS
    for row in rows:
        assert row["text"] == known[row["pmid"]]
        assert row["text"].startswith(row["title"])
