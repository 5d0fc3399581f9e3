from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path

import pytest

from benchmarks.smallest import parse_arguments

SMALLEST = "QUESTIONS --limit 2 --set a=1"


def parser() -> ArgumentParser:
    made = ArgumentParser()
    made.add_argument("questions", type=Path)
    made.add_argument("--limit", type=int, default=60)
    made.add_argument("--set", action="append", default=[])
    return made


def test_smallest_option_replaces_arguments(tmp_path: Path) -> None:
    given = parse_arguments(parser(), SMALLEST, ["--smallest", str(tmp_path)])
    assert (given.limit, given.set) == (2, ["a=1"])
    assert tmp_path in given.questions.parents
    # Later arguments are appended. Without a folder, a temporary one is used.
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
