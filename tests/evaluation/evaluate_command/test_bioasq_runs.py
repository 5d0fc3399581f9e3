"""BioASQ and Synergy runs: every family of measures, verdicts, leakage."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from cluster.errors import InputError
from pipelines.train.card import render_card
from tests.evaluation.evaluate_command.small_runs import measures, question, run_evaluate, write

pytestmark = pytest.mark.slow


def test_bioasq_evaluation_has_every_family_of_measures(good: Path, gold: Path) -> None:
    found = measures(good, gold)
    # Question 1 has half of its documents, at rank 1; the others have all.
    assert found["documents MAP"] == pytest.approx((1 / 2 + 1 + 1) / 3)
    # Document 6 of question 1 is unjudged.
    assert found["documents unjudged rate at 10"] == pytest.approx((1 / 2 + 0 + 0) / 3)
    # 4 to 12 within 0 to 12, ends inclusive: 9 of 13 returned characters, 9 of 9 gold characters.
    assert found["snippets precision"] == pytest.approx(9 / 13)
    assert found["yesno accuracy"] == found["list F1"] == found["factoid MRR"] == 1
    assert found["ROUGE-2 F1"] == 1
    assert "BLEU" not in found
    assert all(map(math.isfinite, found.values()))


def test_one_screen_is_printed_unless_full(good: Path, gold: Path) -> None:
    brief = run_evaluate(good, gold).output.splitlines()
    whole = run_evaluate(good, gold, "--full").output
    assert len(brief) <= 24
    assert max(map(len, brief)) <= 80
    assert any("documents MAP" in line for line in brief)
    assert not any("documents GMAP" in line for line in brief)
    assert any("more measures: add --full" in line for line in brief)
    assert "documents GMAP" in whole


def test_notes_count_unanswered_questions_and_breaches(tmp_path: Path, gold: Path) -> None:
    run = write(tmp_path / "run.json", question("2", "list", *map(str, range(1, 13))))
    shown = run_evaluate(run, gold, "--full").stderr
    assert "2 of 3 gold questions have no answer" in shown
    assert "violations of the task's limits or form; `citeray lint` lists them" in shown


def test_empty_run_is_refused_without_allow_empty(tmp_path: Path, gold: Path) -> None:
    empty = question("2", "list", exact_answer=[[]], ideal_answer=[" "], snippets=[])
    run = write(tmp_path / "run.json", question("1", "yesno"), empty)
    with pytest.raises(InputError, match=r"run\.json: contains no answers.*--allow-empty"):
        run_evaluate(run, gold)
    assert measures(run, gold, "--allow-empty")["documents MAP"] == 0


def test_feedback_qrels_and_training_data_options_apply(
    tmp_path: Path, good: Path, gold: Path
) -> None:
    judged = {"id": "1", "documents": [{"id": "7", "golden": True}, {"id": "6", "golden": False}]}
    feedback = write(tmp_path / "feedback.json", judged)
    found = measures(good, gold, "--feedback", feedback, "--format", "synergy")
    # Only the gold document 8 of question 1 remains, and no document of the run.
    assert found["documents MAP"] == pytest.approx((0 + 1 + 1) / 3)
    qrels, data = tmp_path / "qrels", tmp_path / "train.jsonl"
    qrels.write_text("1 0 6 0\n", encoding="utf-8")
    assert measures(good, gold, "--qrels", qrels)["documents unjudged rate at 10"] == 0
    data.write_text('{"question": "is 1 SO"}\n', encoding="utf-8")
    shown = run_evaluate(good, gold, "--full", "--trained-on", data).stderr
    assert "leakage: 1 of 3 questions and 0 of 4 gold documents" in shown


def store(models: Path, name: str) -> Path:
    """Create a model's folder with the layout of ModelStore."""
    entry = models / "hf" / name.partition(":")[2].replace("/", "--")
    (entry / "model").mkdir(parents=True)
    record = {"name": name, "sha256": "0" * 64, "path": "model"}
    (entry / ".entry.json").write_text(json.dumps(record), encoding="utf-8")
    return entry / "model"


def test_leakage_check_reads_cards_of_stored_and_local_models(
    tmp_path: Path, good: Path, gold: Path
) -> None:
    name = "hf:a/ranker@main"
    folder = store(tmp_path / "models", name)
    (folder / "README.md").write_text("---\ndatasets: [bioasq]\n---\n", encoding="utf-8")
    options = ("--full", "--set=reranker.kind=cross-encoder", f"--set=reranker.model={name}")
    shown = run_evaluate(good, gold, *options).stderr
    assert f"leakage: {name} names bioasq as training data" in shown
    (folder / "README.md").unlink()
    training = {
        "kind": "encoder",
        "base": {"model": "pypi:a==1/b", "sha256": "0" * 64},
        "recipe": {"rank": 4},
        "data": [{"file": "bioasq-7b.json", "sha256": "0" * 64}],
        "held_out": [],
        "licence": "CC BY 2.5",
        "measured": {},
    }
    mine = tmp_path / "encoder"
    mine.mkdir()
    (mine / "README.md").write_text(render_card(training), encoding="utf-8")
    shown = run_evaluate(good, gold, *options, f"--set=encoder.model=file:{mine}").stderr
    assert f"training data unknown: {name} (no model card)" in shown
    assert f"leakage: file:{mine} names bioasq-7b.json as training data" in shown


def with_fields(path: Path, good: Path, **fields: object) -> Path:
    """Write the run `good` with `fields` added to each question, and return its path."""
    rows = json.loads(good.read_text())["questions"]
    return write(path, *({**row, **fields} for row in rows))


def test_verdict_measures_require_verdicts_and_confidence(
    tmp_path: Path, good: Path, gold: Path
) -> None:
    run = with_fields(tmp_path / "with_fields.json", good, confidence=0.9, verdict="answered")
    found = measures(run, gold)
    assert found["verdict yesno answered"] == found["answered yesno accuracy"] == 1
    for kind in ("yesno", "factoid", "list"):
        assert found[f"risk {kind} AURC"] == found[f"risk {kind} at 30%"] == 0
        assert (found[f"risk {kind} answered"], found[f"coverage {kind} answered"]) == (0, 1)
    # The two runs still belong to the same task.
    assert run_evaluate(run, gold, "--against", good).exit_code == 0
    assert "coverage" not in "".join(measures(good, gold))
