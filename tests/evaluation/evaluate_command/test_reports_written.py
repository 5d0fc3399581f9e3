"""The report of each format."""

from __future__ import annotations

from pathlib import Path

import lxml.html
import pytest

from cluster.errors import InputError
from tests.evaluation.evaluate_command.small_runs import label, lines, run_evaluate, task_b, write


def page(folder: Path) -> str:
    return " ".join(lxml.html.parse(folder / "index.html").getroot().text_content().split())


@pytest.mark.slow
def test_report_shows_types_and_worst_questions(tmp_path: Path, good: Path, gold: Path) -> None:
    folder = tmp_path / "report"
    done = run_evaluate(good, gold, "--report", folder, "--against", good)
    assert f"report: {folder / 'index.html'}" in done.stderr
    shown = page(folder)
    assert "good.json against gold.json" in shown
    # Question 1 has only half of its documents, so it is listed first, as the worst.
    assert shown.index("Is 1 so?") < shown.index("Is 2 so?")
    for words in ("factoid", "gold, missed", "not gold, unjudged", "Iron is stored."):
        assert words in shown
    # The words that the snippet of question 2 shares with the gold snippet are marked in both.
    marked = lxml.html.parse(folder / "index.html").getroot().iter("mark")
    assert [mark.text_content() for mark in marked].count("ferritin") == 2


def test_biogen_report_shows_sentences_with_citations(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"))
    run_evaluate(lines(tmp_path / "run.jsonl", task_b(1, 2)), gold, "--report", tmp_path)
    assert "Aspirin inhibits fever. [cites 1, 2]" in page(tmp_path)


def test_report_is_not_written_for_bad_input(tmp_path: Path, good: Path, gold: Path) -> None:
    report, bad = tmp_path / "report", tmp_path / "bad.json"
    bad.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.json: line 1: not JSON"):
        run_evaluate(good, gold, "--against", bad, "--report", report)
    for rows, said in [
        ([5], "question 0: must be an object"),
        ([{"id": "9", "documents": []}], "id '9' is not in the gold file"),
    ]:
        with pytest.raises(InputError, match=said):
            run_evaluate(write(tmp_path / "run.json", *rows), gold, "--report", report)
    assert not report.exists()
