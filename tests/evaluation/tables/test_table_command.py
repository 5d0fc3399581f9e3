"""`citeray table` on small runs of every form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from cluster.errors import InputError
from commands.evaluation.table import table
from tests.evaluation.evaluate_command.small_runs import (
    label,
    lines,
    measures,
    question,
    task_b,
    write,
)
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.slow

app = typer.Typer()
app.command()(table)


def run_table(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def as_data(*arguments: object) -> dict[str, dict[str, dict[str, float]]]:
    """Title -> run -> column -> value."""
    plain = json.loads(run_table(*arguments, "--json").stdout)
    return {one["title"]: one["rows"] for one in plain["tables"]}


def rows(markdown: str, title: str) -> list[list[str]]:
    """The cells of the table below a title, its headings first."""
    below = markdown.partition(f"### {title}\n\n")[2].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in (below[0], *below[2:])]


BIOASQ = {
    "Documents, first 10": ["Mean precision", "Recall", "F-Measure", "MAP", "GMAP"],
    "Snippets, first 10": ["Mean precision", "Recall", "F-Measure", "MAP", "GMAP"],
    "Exact answers: Yes/No": ["Accuracy", "F1 Yes", "F1 No", "Macro F1"],
    "Exact answers: Factoid": ["Strict Acc.", "Lenient Acc.", "MRR"],
    "Exact answers: List": ["Mean Prec.", "Recall", "F-Measure"],
    "Ideal answers": ["R-2 (Rec)", "R-2 (F1)", "R-SU4 (Rec)", "R-SU4 (F1)"],
}


def test_tables_are_those_of_bioasqs_result_pages(gold: Path, first: Path, second: Path) -> None:
    found = as_data(first, second, "--gold", gold)
    assert list(found) == list(BIOASQ)
    for title, columns in BIOASQ.items():
        assert {run: list(values) for run, values in found[title].items()} == dict.fromkeys(
            ("first", "second"), columns
        )
    run = write(first.parent / "few.json", question("1", "yesno", "7", exact_answer="yes"))
    told = run_table(run, "--gold", gold)
    assert "few.json: 2 of 3 gold questions have no answer" in told.stderr


def test_values_are_those_that_evaluate_prints(gold: Path, first: Path, second: Path) -> None:
    found = as_data(first, second, "--gold", gold, "--bleu")
    for run in (first, second):
        told = measures(run, gold, "--bleu")
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
            assert found[title][run.stem][column] == told[name]
        kinds = ("Yes/No", "Factoid", "List")
        exact = [found[f"Exact answers as texts: {k}"][run.stem]["BLEU"] for k in kinds]
        # One question of each type.
        assert sum(exact) / 3 == pytest.approx(told["exact BLEU"])
        ideal = [found[f"Ideal answers as texts: {k}"][run.stem]["BLEU"] for k in kinds[:2]]
        assert sum(ideal) / 2 == pytest.approx(told["BLEU"])


def test_what_a_run_does_not_have_is_a_dash_and_a_table_of_nothing_is_left_out(
    tmp_path: Path, gold: Path, first: Path
) -> None:
    documents = [question(n, "summary", "7") for n in "123"]
    run = write(tmp_path / "documents.json", *documents)
    shown = run_table(first, run, "--gold", gold).stdout
    assert rows(shown, "Exact answers: Factoid")[2] == ["documents", "-", "-", "-"]
    assert "Ideal answers" not in run_table(run, "--gold", gold).stdout


def test_the_depth_reaches_documents_below_the_tenth(tmp_path: Path) -> None:
    asked = write(tmp_path / "gold.json", question("1", "summary", "7"))
    run = write(tmp_path / "deep.json", question("1", "summary", *map(str, range(100, 1098)), "7"))
    ten = as_data(run, "--gold", asked)["Documents, first 10"]["deep"]
    deep = as_data(run, "--gold", asked, "--depth", 1000)["Documents, first 1,000"]["deep"]
    assert (ten["Recall"], deep["Recall"]) == (0, 1)
    assert deep["MAP"] == pytest.approx(1 / 999)
    assert run_table(run, "--gold", asked, "--depth", 1001).exit_code == 2


@pytest.mark.model
def test_answers_as_texts_are_shown_by_type_where_they_are_asked_for(
    tmp_path: Path, gold: Path, first: Path, second: Path
) -> None:
    model = make_tiny_encoder(tmp_path / "tiny").parent / "base"
    shown = run_table(first, second, "--gold", gold, "--bertscore", model).stdout
    headings, good, bad = rows(shown, "Exact answers as texts: Factoid")
    assert headings[1:] == ["BLEU", "BERTScore precision", "BERTScore recall", "BERTScore F1"]
    assert good == ["first", "**100.0000**", "**1.0000**", "**1.0000**", "**1.0000**"]
    assert bad[1] == "0.0000"
    assert "Ideal answers as texts: Yes/No" in shown
    # No question of the gold file is a summary.
    assert "as texts: Summary" not in shown
    bleu = run_table(first, second, "--gold", gold, "--bleu").stdout
    assert rows(bleu, "Exact answers as texts: Factoid")[0] == ["System", "BLEU"]


def test_synergys_feedback_is_left_out(tmp_path: Path, gold: Path, first: Path) -> None:
    judged = {"id": "1", "documents": [{"id": "7", "golden": True}, {"id": "6", "golden": False}]}
    feedback = write(tmp_path / "feedback.json", judged)
    options = ("--feedback", feedback, "--format", "synergy")
    found = as_data(first, "--gold", gold, *options)["Documents, first 10"]["first"]
    assert found["MAP"] == measures(first, gold, *options)["documents MAP"]
    assert found["MAP"] != measures(first, gold)["documents MAP"]


def test_biogen_b_has_the_tracks_columns_and_less_contradiction_is_better(tmp_path: Path) -> None:
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


def test_biogen_a_has_support_and_contradiction(tmp_path: Path) -> None:
    def task_a(*pmids: int) -> dict[str, Any]:
        said = {
            "text": "Aspirin inhibits fever.",
            "existing_supported_citations": [],
            "supported_citations": list(pmids),
            "contradicted_citations": [2],
        }
        return {"metadata": {"team_id": "t", "run_id": "r", "qa_id": "116"}, "answer": [said]}

    labels = [label(1, "support"), label(2, "contradict"), label(3, "neutral")]
    gold = lines(tmp_path / "gold.jsonl", *labels)
    runs = [lines(tmp_path / "a.jsonl", task_a(1)), lines(tmp_path / "b.jsonl", task_a(1, 3))]
    shown = run_table(*runs, "--gold", gold).stdout
    assert rows(shown, "Supporting citations")[1:] == [
        ["a", "**1.0000**", "1.0000", "**1.0000**"],
        ["b", "0.5000", "1.0000", "0.6667"],
    ]
    assert rows(shown, "Contradicting citations by experts' labels")[1][1:] == ["1.0000"] * 2


def test_the_tables_can_be_written_into_a_file(tmp_path: Path, gold: Path, first: Path) -> None:
    told = run_table(first, "--gold", gold).stdout
    assert run_table(first, "--gold", gold, "-o", tmp_path / "table.md").stdout == ""
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == told
    (tmp_path / "none").touch()
    with pytest.raises(InputError, match=r"none/table\.md: cannot be written"):
        run_table(first, "--gold", gold, "-o", tmp_path / "none/table.md")


def test_runs_of_one_file_name_are_told_apart_by_their_paths(
    tmp_path: Path, gold: Path, first: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / first.name
    other.write_bytes(first.read_bytes())
    assert list(as_data(first, other, "--gold", gold)["Ideal answers"]) == [str(first), str(other)]
    with pytest.raises(InputError, match=r"first\.json: is given twice"):
        run_table(first, first, "--gold", gold)


def test_runs_over_other_questions_are_refused(tmp_path: Path, gold: Path, first: Path) -> None:
    few = write(tmp_path / "few.json", question("1", "yesno", "7", exact_answer="yes"))
    with pytest.raises(
        InputError, match=r"few\.json: answers 1 of 3 questions and lacks '2', which .*first\.json"
    ):
        run_table(first, few, "--gold", gold)


def test_runs_of_two_forms_are_refused(tmp_path: Path, gold: Path, first: Path) -> None:
    other = lines(tmp_path / "b.jsonl", task_b(1))
    with pytest.raises(InputError, match=r"b\.jsonl: its form is biogen-b, and that of .*bioasq"):
        run_table(first, other, "--gold", gold)
    with pytest.raises(InputError, match="--format trec: unknown; there are: bioasq"):
        run_table(first, "--gold", gold, "--format", "trec")
