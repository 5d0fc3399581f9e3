from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.evaluate_command.small_runs import question, snippet, write


@pytest.fixture(autouse=True)
def _no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "models"))


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(
        tmp_path / "gold.json",
        question("1", "yesno", "7", "8", exact_answer="yes", ideal_answer=["Iron is stored."]),
        question("2", "list", "9", exact_answer=[["a"], ["c"]], snippets=[snippet("9", 4, "iron")]),
        question("3", "factoid", "5", exact_answer=[["b"]], ideal_answer=["It is b."]),
    )


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """Run with one wrong list name and one wrong document of question 1."""
    return write(
        tmp_path / "first.json",
        question("1", "yesno", "6", "7", exact_answer="yes", ideal_answer="Iron is stored."),
        question("2", "list", "9", exact_answer=[["a"]], snippets=[snippet("9", 0, "The iron")]),
        question("3", "factoid", "5", exact_answer=[["b"]], ideal_answer="It is b."),
    )


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Run with better documents for question 1 and worse answers elsewhere."""
    return write(
        tmp_path / "second.json",
        question("1", "yesno", "7", "8", exact_answer="no", ideal_answer="Iron is not."),
        question("2", "list", "1", exact_answer=[["a"], ["x"], ["y"], ["c"]]),
        question("3", "factoid", "5", exact_answer=[["z"], ["b"]], ideal_answer="It is z or b."),
    )
