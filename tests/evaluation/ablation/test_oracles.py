"""Presets and oracles that run in this process, and the loss of each stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.settings.presets import load_system
from commands.evaluation.ablate import make_plans, read_systems, vary_systems
from tests.evaluation.ablation.ablation_runs import ROWS, Ablation
from tests.evaluation.evaluate_command.small_runs import write
from tests.serve.http_server import free_port

pytestmark = pytest.mark.model


def test_answers_are_rerun_for_each_other_k() -> None:
    names = [plan.name for plan in make_plans([load_system("bm25")], [5, 10], True, ["retrieve"])]
    (plan,) = make_plans([load_system("bm25")], [5, 20], False, [])
    assert (plan.name, plan.k) == ("bm25", 20), "rankings are not run again"
    assert names == ["bm25", "bm25.evidence-5", "bm25.oracle-retrieve"]


def test_presets_run_in_process_without_an_endpoint(tmp_path: Path, local: list[str]) -> None:
    run = Ablation(tmp_path, free_port())
    found = run.json("bm25", *local)
    assert "loading the graph here" in run.log
    assert found["systems"][0]["measures"]["documents MRR@10"]["value"] == 1.0


def test_preset_file_and_variants_run_in_process(tmp_path: Path, local: list[str]) -> None:
    run = Ablation(tmp_path, free_port())
    file = tmp_path / "mine.yaml"
    file.write_text("over: bm25\nevidence: 2\n", encoding="utf-8")
    found = run.json(str(file), "--vary", "evidence=1,3", "--vary", "retrieve.bm25=5", *local)
    names = [f"mine.evidence={evidence}.retrieve.bm25=5" for evidence in (1, 3)]
    assert [system["name"] for system in found["systems"]] == names
    assert sorted(path.stem for path in run.output.glob("*.json")) == names
    assert "presets of your own run in this process" in run.log


def test_duplicate_systems_and_bad_variations_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / folder / "mine.yaml" for folder in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text("over: bm25\n", encoding="utf-8")
    with pytest.raises(InputError, match="two of the systems are named mine"):
        read_systems([str(file) for file in files])
    for option in ("evidence", "=5", "evidence=", "evidence=1,,2", ""):
        with pytest.raises(InputError, match=r"expected key=values with commas"):
            vary_systems([load_system("bm25")], [option])


def test_oracles_show_the_loss_of_each_stage(tmp_path: Path, local: list[str]) -> None:
    """BM25 finds one of q1's documents 2 and 1: recall 1/2 in one of three questions."""
    run = Ablation(tmp_path, free_port())
    oracles = [word for name in ("retrieve", "evidence") for word in ("--oracle", name)]
    losses = run.json("bm25", *oracles, *local)["losses"]
    found = {(loss["oracle"], loss["measure"]): loss for loss in losses}
    recall = found["retrieve", "documents recall"]
    assert (recall["without"], recall["with_oracle"]) == (pytest.approx(2.5 / 3), 1.0)
    assert recall["lost"]["value"] == pytest.approx(0.5 / 3)
    assert recall["lost"]["verdict"] == "no difference shown"
    assert found["evidence", "snippets precision"]["with_oracle"] == 1.0
    assert "Loss of each stage" in run.text("bm25", *oracles, *local)
    assert not any(o == "evidence" and m.startswith("documents") for o, m in found)


def test_oracle_run_is_refused_if_gold_changed(tmp_path: Path, local: list[str]) -> None:
    run = Ablation(tmp_path, free_port())
    run.text("bm25", "--oracle", "evidence", *local)
    run.gold = write(tmp_path / "gold.json", *ROWS[:2], {**ROWS[2], "documents": ["9"]})
    with pytest.raises(InputError, match=r"oracle-evidence\.jsonl: .*gold was"):
        run.text("bm25", "--oracle", "evidence", *local)
