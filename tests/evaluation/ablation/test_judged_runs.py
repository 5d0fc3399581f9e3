"""RAGAS in `citeray ablate`, judged by the passages that the model received."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.ablation.ablation_runs import Ablation
from tests.evaluation.scripted_judge import ScriptedJudge
from tests.serve.api import make_api
from tests.serve.chat_endpoint import chat_endpoint
from tests.serve.http_server import serving
from tests.serve.service import SmallService
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.nightly


class Judged:
    """Ablations of a service with a language model, with a judge over HTTP."""

    def __init__(self, run: Ablation, judge: ScriptedJudge, url: str, encoder: Path) -> None:
        self.run, self.judge = run, judge
        self.options = ["--answers", "--judge", url, "--judge-model", "j"]
        self.options += ["--set", f"encoder.model=file:{encoder}", "--set", "encoder.sha256="]

    def json(self, *arguments: str) -> dict[str, Any]:
        return self.run.json(*arguments, *self.options)

    def text(self, *arguments: str) -> str:
        return self.run.text(*arguments, *self.options)


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[Judged]:
    judge = ScriptedJudge()
    encoder = make_tiny_encoder(tmp_path / "encoder")
    with (
        chat_endpoint("Metformin activates AMPK in the liver of diabetic mice.") as endpoint,
        serving(judge.app()) as port,
    ):
        service = SmallService(writer=endpoint.model())
        with serving(make_api(service)) as served:
            run = Ablation(tmp_path, served)
            yield Judged(run, judge, f"http://127.0.0.1:{port}/v1", encoder)


def test_judge_receives_the_passages_shown_to_the_model(judged: Judged) -> None:
    found = judged.json("bm25", "biorag-v1")
    for system in found["systems"]:
        assert {"faithfulness", "passages relevant", "snippets covered"} <= system[
            "measures"
        ].keys()
    entry = next(
        e
        for e in json.loads((judged.run.output / "biorag-v1.json").read_text())["questions"]
        if e["id"] == "q3"
    )
    shown = [item["text"] for item in entry["shown"]]
    assert shown
    prompts = "\n".join(judged.judge.users("verdicts"))
    assert all(text in prompts for text in shown)
    assert "right on 100% of cases with known verdicts" in judged.run.log


def test_stored_judgements_are_reused(judged: Judged) -> None:
    first = judged.json("bm25")
    record = judged.run.output / "bm25.judged.jsonl"
    lines = record.read_text().splitlines(keepends=True)
    assert len(lines) == 4
    judged.judge.bodies.clear()
    assert judged.json("bm25")["systems"] == first["systems"]
    assert judged.judge.users("statements") == []
    # Truncate the file in the middle of a line, as a crash does.
    record.write_text("".join(lines[:3]) + lines[3][:9])
    assert judged.json("bm25")["systems"] == first["systems"]
    assert len(judged.judge.users("noncommittal")) == 1
    assert judged.json("bm25")["systems"] == first["systems"]
    assert len(judged.judge.users("noncommittal")) == 1


def test_another_judge_starts_over(judged: Judged) -> None:
    judged.json("bm25")
    record = judged.run.output / "bm25.judged.jsonl"
    record.write_text(record.read_text().replace("j at http", "other at http"))
    judged.judge.bodies.clear()
    shown = judged.text("bm25")
    assert "faithfulness" in shown
    assert "judge failures" in shown
    assert len(judged.judge.users("noncommittal")) == 3


def test_settings_judge_uses_its_own_key(judged: Judged, monkeypatch: pytest.MonkeyPatch) -> None:
    url = judged.options[2]
    monkeypatch.setenv("MY_JUDGES_KEY", "of-mine")
    judge = f"{{kind: url, url: '{url}', model_id: j, api_key_env: MY_JUDGES_KEY}}"
    judged.options[1:5] = ["--judge", "settings", "--set", f"models.judge={judge}"]
    [system] = judged.json("bm25")["systems"]
    assert "faithfulness" in system["measures"]
    assert set(judged.judge.keys) == {"Bearer of-mine"}
