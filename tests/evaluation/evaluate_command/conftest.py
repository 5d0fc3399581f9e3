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
        question("2", "list", "9", exact_answer=[["a"]], snippets=[snippet("9", 4, "ferritin")]),
        question("3", "factoid", "5", exact_answer=[["b"]]),
    )


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(
        tmp_path / "good.json",
        question("1", "yesno", "7", "6", exact_answer="yes", ideal_answer="Iron is stored."),
        question(
            "2", "list", "9", exact_answer=[["a"]], snippets=[snippet("9", 0, "The ferritin")]
        ),
        question("3", "factoid", "5", exact_answer=[["b"]]),
    )
