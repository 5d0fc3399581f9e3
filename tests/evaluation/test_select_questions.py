"""Selection of questions by topic, type and random sampling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.bioasq.read_bioasq import read_gold
from evaluation.bioasq.select_questions import select_questions
from tests.commands.run_here import run_here

ROWS: list[dict[str, Any]] = [
    {"id": "1", "type": "factoid", "body": "Which gene causes Huntington's disease?"},
    {"id": "2", "type": "summary", "body": "What is a migraine with aura?"},
    {"id": "3", "type": "yesno", "body": "Do triptans end a migraine?"},
    {"id": "4", "type": "summary", "body": "What are migraineurs?"},
    {"id": "5", "type": "list", "body": "Which drugs treat asthma?"},
]


def ids(**how: Any) -> list[str]:
    return [row["id"] for row in select_questions(ROWS, **how)]


def test_keyword_matches_whole_words_ignoring_case() -> None:
    assert ids(keywords=["MIGRAINE"]) == ["2", "3"]
    assert ids(keywords=["migraine", "Huntington's disease"]) == ["1", "2", "3"]
    assert ids(keywords=["migraine with aura", "c++"]) == ["2"]


def test_selection_requires_type_and_keyword() -> None:
    assert ids(types=["summary", "list"], keywords=["migraine"]) == ["2"]
    assert ids(types=["summary"]) == ["2", "4"]
    assert ids() == ["1", "2", "3", "4", "5"]


def test_sample_is_reproducible_and_keeps_order() -> None:
    samples = {seed: ids(sample=3, seed=seed) for seed in range(20)}
    assert all(found == sorted(found) and len(found) == 3 for found in samples.values())
    assert samples == {seed: ids(sample=3, seed=seed) for seed in range(20)}
    assert len({tuple(found) for found in samples.values()}) > 3
    assert ids(sample=5) == ids()


def test_selection_of_too_few_questions_is_refused() -> None:
    with pytest.raises(InputError, match=r"5 of 5 questions .* ask for a smaller --sample or give"):
        select_questions(ROWS, sample=6)
    with pytest.raises(InputError, match="0 of 5 questions are of those types and have a keyword"):
        select_questions(ROWS, keywords=["malaria"])


def test_questions_command_copies_rows_unchanged(tmp_path: Path) -> None:
    rows = [{**row, "documents": ["d"], "other": {"ü": 1}} for row in ROWS]
    gold, out, words = tmp_path / "gold.json", tmp_path / "out.json", tmp_path / "words.txt"
    gold.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    words.write_text("migraine\n", encoding="utf-8")
    asked = ("-o", out, "--keywords", words, "--type", "summary, yesno")
    assert run_here("questions", gold, *asked)[1] == f"2 of 5 questions -> {out}\n"
    assert json.loads(out.read_text(encoding="utf-8"))["questions"] == rows[1:3]
    assert list(read_gold(out)) == ["2", "3"]
