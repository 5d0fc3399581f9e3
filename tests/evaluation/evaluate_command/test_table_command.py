"""`citeray table` on small runs of every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.errors import InputError
from commands.evaluation.table import table
from tests.evaluation.evaluate_command.small_runs import (
    label,
    lines,
    measures,
    question,
    runner_of,
    task_b,
    write,
)

pytestmark = pytest.mark.slow

run_table = runner_of(table)


def as_data(*arguments: object) -> dict[str, dict[str, dict[str, float]]]:
    """Title -> run -> column -> value."""
    plain = json.loads(run_table(*arguments, "--json").stdout)
    return {one["title"]: one["rows"] for one in plain["tables"]}


def rows(markdown: str, title: str) -> list[list[str]]:
    """Return the cells of the table below a title, headings good."""
    below = markdown.partition(f"### {title}\n\n")[2].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in (below[0], *below[2:])]


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Run with better documents for question 1 and worse answers elsewhere."""
    return write(
        tmp_path / "second.json",
        question("1", "yesno", "7", "8", exact_answer="no", ideal_answer="Iron is not."),
        question("2", "list", "1", exact_answer=[["a"], ["x"], ["y"], ["c"]]),
        question("3", "factoid", "5", exact_answer=[["z"], ["b"]], ideal_answer="It is z or b."),
    )


def test_table_values_equal_those_of_evaluate(gold: Path, good: Path, second: Path) -> None:
    found = as_data(good, second, "--gold", gold, "--bleu")
    for run in (good, second):
        evaluated = measures(run, gold, "--bleu")
        names = {
            ("Documents, first 10", "MAP"): "documents MAP",
            ("Documents, first 10", "GMAP"): "documents GMAP",
            ("Documents, first 10", "F-Measure"): "documents F1",
            ("Snippets, first 10", "F-Measure"): "snippets F1",
            ("Exact answers: Yes/No", "Macro F1"): "yesno macro F1",
            ("Exact answers: Factoid", "Lenient Acc."): "factoid lenient accuracy",
            ("Exact answers: List", "Mean Prec."): "list precision",
            ("Exact answers: List", "Recall"): "list recall",
            ("Ideal answers", "R-2 (Rec)"): "ROUGE-2 recall",
            ("Ideal answers", "R-SU4 (F1)"): "ROUGE-SU4 F1",
        }
        for (title, column), name in names.items():
            assert found[title][run.stem][column] == evaluated[name]
        kinds = ("Yes/No", "Factoid", "List")
        exact = [found[f"Exact answers as texts: {k}"][run.stem]["BLEU"] for k in kinds]
        # One question of each type.
        assert sum(exact) / 3 == pytest.approx(evaluated["exact BLEU"])
        ideal = [found[f"Ideal answers as texts: {k}"][run.stem]["BLEU"] for k in kinds[:2]]
        assert sum(ideal) / 2 == pytest.approx(evaluated["BLEU"])


def test_biogen_b_table_has_the_tracks_columns(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"), label(2, "contradict"))
    good = lines(tmp_path / "good.jsonl", task_b(1))
    bad = lines(tmp_path / "bad.jsonl", task_b(1, 2))
    shown = run_table(good, bad, "--gold", gold).stdout
    assert rows(shown, "Citation quality") == [
        ["System", "Citation coverage", "Citation support rate", "Citation contradict rate"],
        ["good", "1.0000", "**1.0000**", "**0.0000**"],
        ["bad", "1.0000", "0.5000", "0.5000"],
    ]
    assert rows(shown, "Document relevancy")[2] == ["bad", "1.0000", "**1.0000**"]


def test_runs_with_the_same_file_name_are_named_by_path(
    tmp_path: Path, gold: Path, good: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / good.name
    other.write_bytes(good.read_bytes())
    assert list(as_data(good, other, "--gold", gold)["Ideal answers"]) == [str(good), str(other)]
    with pytest.raises(InputError, match=r"good\.json: is given twice"):
        run_table(good, good, "--gold", gold)


def test_table_refuses_runs_over_different_questions(
    tmp_path: Path, gold: Path, good: Path
) -> None:
    few = write(tmp_path / "few.json", question("1", "yesno", "7", exact_answer="yes"))
    with pytest.raises(
        InputError, match=r"few\.json: answers 1 of 3 questions and lacks '2', which .*good\.json"
    ):
        run_table(good, few, "--gold", gold)


def test_table_refuses_runs_of_different_formats(tmp_path: Path, gold: Path, good: Path) -> None:
    other = lines(tmp_path / "b.jsonl", task_b(1))
    with pytest.raises(InputError, match=r"b\.jsonl: its format is biogen-b, and that of .*bioasq"):
        run_table(good, other, "--gold", gold)
    with pytest.raises(InputError, match="--format trec: unknown; there are: bioasq"):
        run_table(good, "--gold", gold, "--format", "trec")
