"""BioGen runs, runs that can be measured only in part, and the report of each format."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import lxml.html
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
from tests.evaluation.lint.lint_runs import grounded
from tests.small_index import citation, make_index
from tests.tiny_models import make_tiny_cross_encoder


def test_biogen_b_run_is_scored_by_human_labels(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"), label(2, "contradict"))
    found = measures(lines(tmp_path / "run.jsonl", task_b(1, 2, 3)), gold)
    assert found["citation coverage"] == 1
    assert found["citation support rate"] == pytest.approx(1 / 3)
    assert found["citation contradict rate"] == pytest.approx(1 / 3)
    csv = tmp_path / "gold.csv"
    row = '116,Aspirin inhibits fever.,"PMID: 1",supports'
    csv.write_text(f"qid,answer_sentence,citation,judgement\n{row}\n", encoding="utf-8")
    assert measures(tmp_path / "run.jsonl", csv)["citation coverage"] == 1
    assert found["share of unjudged citations"] == pytest.approx(1 / 3)


def test_biogen_task_is_detected_from_the_file(tmp_path: Path) -> None:
    said: dict[str, Any] = {"text": "Aspirin inhibits fever.", "existing_supported_citations": []}
    said |= {"supported_citations": [1], "contradicted_citations": [2]}
    run = lines(tmp_path / "run.jsonl", grounded(**said))
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"), label(2, "neutral"))
    found = measures(run, gold)
    assert found["support F1"] == 1
    assert found["contradict F1"] == 0
    labels = {"supported_citations_labels": {"1": "supports"}, "contradicted_citations_labels": {}}
    again = lines(tmp_path / "task-a.jsonl", grounded(**said, **labels))
    assert measures(run, again)["support precision"] == 1


@pytest.fixture
def nli(tmp_path: Path) -> Path:
    """Tiny NLI model that always predicts entailment."""
    from transformers import BertForSequenceClassification

    path = make_tiny_cross_encoder(tmp_path / "nli", labels=3)
    model = BertForSequenceClassification.from_pretrained(path)
    model.classifier.weight.data.zero_()
    model.classifier.bias.data[:] = 0
    model.classifier.bias.data[2] = 9.0
    model.config.id2label = {0: "contradiction", 1: "neutral", 2: "entailment"}
    model.save_pretrained(path)
    return path


@pytest.mark.model
def test_biogen_run_is_judged_by_nli_over_the_index(tmp_path: Path, nli: Path) -> None:
    index = tmp_path / "index"
    make_index(index, [citation(1, "Aspirin inhibits fever.")], shards=1)
    topics = lines(tmp_path / "topics.jsonl", {"topic_id": "116"})
    run = lines(tmp_path / "run.jsonl", task_b(1, 2))
    options = ("--set=support.kind=nli", f"--set=support.model=file:{nli}")
    found = measures(run, topics, *options, f"--set=index.path={index}")
    # The index holds only PMID 1, so PMID 2 cannot be judged.
    assert found["citation coverage"] == 1
    assert found["share of machine judgements"] == found["share of unjudged citations"] == 0.5
    with pytest.raises(InputError, match="no index; the NLI judge reads"):
        run_evaluate(run, topics, *options, f"--set=index.path={tmp_path / 'none'}")


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
    run, other = lines(tmp_path / "b", task_b(1)), lines(tmp_path / "a", grounded())
    with pytest.raises(InputError, match="compare runs of one task"):
        run_evaluate(run, gold, "--against", other)


def test_reversed_snippet_affects_only_its_own_gmap(tmp_path: Path, gold: Path) -> None:
    """The official program's lengths are 10 - 30 + 1 and 12 - 4 + 1, together -10."""
    backwards = {**snippet("9", 30, ""), "offsetInEndSection": 10}
    row = question("2", "list", "9", snippets=[backwards, snippet("9", 4, "ferritin")])
    found = measures(write(tmp_path / "run.json", row), gold)
    assert found["snippets precision"] == pytest.approx(9 / -10)
    assert "snippets GMAP" not in found


@pytest.mark.process
def test_unpaired_surrogate_in_id_is_printed_escaped(tmp_path: Path) -> None:
    answered = question("y", "summary", "7")
    gold = write(tmp_path / "gold.json", {**answered, "id": "\ud800"}, answered)
    run = write(tmp_path / "run.json", answered)
    command = [sys.executable, "-m", "commands.cli", "evaluate", str(run), str(gold), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert json.loads(done.stdout)["missing"] == ["\ud800"]


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
