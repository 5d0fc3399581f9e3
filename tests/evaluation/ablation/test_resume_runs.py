"""Interrupted runs resume unless they belong to another run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cluster.errors import CiteRayError, InputError
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from evaluation.ablation.ask_graph import Plan
from evaluation.ablation.run_plans import open_run, run_key
from tests.evaluation.ablation.ablation_runs import Ablation, FlakyService
from tests.serve.http_server import free_port

pytestmark = pytest.mark.nightly


def test_complete_run_needs_no_graph(run: Ablation, service: FlakyService) -> None:
    found = run.json("bm25", "hybrid")
    service.asked.clear()
    run.port = free_port()
    assert run.json("bm25", "hybrid") == found
    assert service.asked == []


def test_interrupted_run_resumes_over_the_same_index_version(
    run: Ablation, service: FlakyService
) -> None:
    service.lost = ("q2",)
    with pytest.raises(CiteRayError, match="q2 is lost"):
        run.text("bm25")
    assert not (run.output / "bm25.json").exists()
    service.lost, service.version = (), "v000002"
    with pytest.raises(InputError, match=r"version v000001, but the index is now v000002"):
        run.text("bm25")
    service.version = "v000001"
    service.asked.clear()
    run.text("bm25")
    assert set(service.ids()) == {"q2"}
    entries = json.loads((run.output / "bm25.json").read_text())["questions"]
    assert [entry["id"] for entry in entries] == ["q3", "q1", "q2"]


def test_truncated_line_is_asked_again(run: Ablation, service: FlakyService) -> None:
    found = run.json("bm25")
    record = run.output / "bm25.jsonl"
    record.write_bytes(record.read_bytes()[:-30])
    service.asked.clear()
    again = run.json("bm25")
    assert set(service.ids()) == {"q2"}
    assert again["systems"][0]["measures"] == found["systems"][0]["measures"]
    assert len(record.read_text(encoding="utf-8").splitlines()) == 4


def test_invalid_record_is_refused(run: Ablation, service: FlakyService) -> None:
    run.output.mkdir()
    record = run.output / "bm25.jsonl"
    for text in ("[]\n", "7\n", '{"run": 3}\n', "hello\n", '{"run": {}}\n[]\n'):
        record.write_text(text)
        with pytest.raises(InputError, match=r"bm25\.jsonl: is damaged or not the record of a run"):
            run.text("bm25")
    # A file with a truncated first line is discarded, and the run starts again.
    record.write_text('{"run": {"pre')
    run.text("bm25")
    assert set(service.ids()) == {"q3", "q1", "q2"}


def test_changed_preset_of_the_same_name_is_refused(run: Ablation) -> None:
    run.text("bm25")
    plan, settings = Plan(load_system("bm25"), 10, False), load_settings(None, ["llm.kind=none"])

    def key(**changes: object) -> Any:
        changed = replace(plan, system=plan.system.model_copy(update=changes))
        return run_key(changed, settings, run.questions, run.gold)

    assert key(about="Better words.") == key()
    with pytest.raises(InputError, match=r"bm25\.jsonl: holds replies of another run \(preset was"):
        open_run(run.output, plan, key(expand=True))


def test_runs_over_different_index_versions_are_refused(
    run: Ablation, service: FlakyService
) -> None:
    run.text("bm25")
    service.version = "v000002"
    with pytest.raises(InputError, match=r"bm25\.jsonl v000001, .*hybrid\.jsonl v000002"):
        run.text("bm25", "hybrid")
