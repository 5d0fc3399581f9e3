from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.chromium import open_browser
from tests.evaluation.evaluate_command.small_runs import question, write

QUESTIONS = ("1", "2", "3", "4", "5", "6")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    rows = [question(n, "summary", "7", ideal_answer=[f"Gold {n}."]) for n in QUESTIONS]
    return write(tmp_path / "gold.json", *rows)


def make_run(path: Path, words: str) -> Path:
    said = [question(n, "summary", "7", "8", ideal_answer=f"{words} {n}.") for n in QUESTIONS]
    return write(path, *said)


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return make_run(tmp_path / "first.json", "Iron is stored in")


@pytest.fixture
def second(tmp_path: Path) -> Path:
    return make_run(tmp_path / "second.json", "Zinc is found in")
