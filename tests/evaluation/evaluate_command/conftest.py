from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.evaluation.evaluate_command.small_runs import question, snippet, write
from tests.evaluation.lint.lint_runs import URL


@pytest.fixture(autouse=True)
def _no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "models"))


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(
        tmp_path / "gold.json",
        question("1", "yesno", "7", "8", exact_answer="yes", ideal_answer=["Iron is stored."]),
        question(
            "2", "list", "9", exact_answer=[["a"], ["c"]], snippets=[snippet("9", 4, "ferritin")]
        ),
        question("3", "factoid", "5", exact_answer=[["b"]], ideal_answer=["It is b."]),
    )


@pytest.fixture
def good(gold: Path) -> Path:
    """Run with the gold answers, except for one wrong document and a longer snippet."""
    rows = json.loads(gold.read_text())["questions"]
    rows[0]["documents"][1] = f"{URL}6"
    rows[1]["snippets"] = [snippet("9", 0, "The ferritin")]
    return write(gold.with_name("good.json"), *rows)
