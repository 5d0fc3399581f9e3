"""Runs that cannot be measured, or only in part."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.errors import InputError
from tests.evaluation.evaluate_command.small_runs import (
    label,
    lines,
    measures,
    question,
    run_evaluate,
    snippet,
    task_b,
    write,
)


def test_leaving_out_hard_questions_gives_no_advantage(tmp_path: Path) -> None:
    """Both runs answer the first question exactly; the second run also answers others, wrongly."""
    rows = [question(str(n), ideal_answer=[f"Iron number {n} is stored."]) for n in range(6)]
    said = [{**row, "ideal_answer": "No idea at all of that."} for row in rows]
    first = {**rows[0], "ideal_answer": rows[0]["ideal_answer"][0]}
    blank = [{**row, "ideal_answer": ""} for row in rows[1:]]
    gold = write(tmp_path / "gold", *rows)
    few = write(tmp_path / "few", first, *blank)
    many = write(tmp_path / "many", first, *said[1:])
    plain = json.loads(run_evaluate(few, gold, "--against", many, "--bleu", "--json").stdout)
    assert plain["against"]["BLEU"]["value"] == 0
    assert plain["against"]["BLEU"]["verdict"] == "no difference shown"


def test_runs_of_different_tasks_cannot_be_compared(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"))
    sentence = {"text": "Iron.", "supported_citations": [], "contradicted_citations": []}
    other = {"metadata": {"qa_id": "116"}, "answer": [sentence]}
    with pytest.raises(InputError, match="compare runs of one task"):
        run_evaluate(
            lines(tmp_path / "b", task_b(1)), gold, "--against", lines(tmp_path / "a", other)
        )


def test_reversed_snippet_affects_only_its_own_gmap(tmp_path: Path, gold: Path) -> None:
    """The official program's lengths are 10 - 30 + 1 and 12 - 4 + 1, together -10."""
    backwards = {**snippet("9", 30, ""), "offsetInEndSection": 10}
    row = question("2", "list", "9", snippets=[backwards, snippet("9", 4, "ferritin")])
    found = measures(write(tmp_path / "run.json", row), gold)
    assert found["snippets precision"] == pytest.approx(9 / -10)
    assert "snippets GMAP" not in found


@pytest.mark.process
def test_unpaired_surrogate_in_id_is_printed_escaped(tmp_path: Path) -> None:
    path = tmp_path / "gold.json"
    row = question("x", "summary", "7")
    path.write_text(
        json.dumps({"questions": [{**row, "id": "\ud800"}, {**row, "id": "y"}]}), encoding="utf-8"
    )
    run = write(tmp_path / "run.json", question("y", "summary", "7"))
    command = [sys.executable, "-m", "commands.cli", "evaluate", str(run), str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert json.loads(done.stdout)["missing"] == ["\ud800"]
