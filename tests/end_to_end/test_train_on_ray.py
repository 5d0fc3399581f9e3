"""`citeray train` with two workers on a real Ray resumes after it was killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from cluster.models.adapters import model_folder
from cluster.settings.stages.expander import RecogniserSettings
from serve.question.expand_question import TransformerRecogniser
from tests.end_to_end.command import BIN, ray_of_its_own, run, start, with_settings
from tests.end_to_end.waiting import await_that
from tests.pipelines.train.tiny_data import tagged_rows, write_lines
from tests.tiny_models import make_tiny_encoder

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

RECIPE = [
    *("steps=80", "batch=2", "rank=4", "dropout=0", "max_tokens=32", "checkpoint_every=10"),
    *("learning_rate=0.005", "head_learning_rate=0.01"),
]


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    base = make_tiny_encoder(tmp_path)
    file = str(write_lines(tmp_path / "tagged.jsonl", tagged_rows()))
    settings = [f"encoder.model=file:{base}", "encoder.threads=1", "ray.object_store_mb=128"]
    words = [str(BIN / "citeray"), "train", "ner", file, "--held-out", file, "--json"]
    words += ["--out", str(tmp_path / "out"), "--workers", "2"]
    words += [word for change in RECIPE for word in ("--with", change)]
    return with_settings(words, settings)


def check_learned(out: Path) -> None:
    chosen = RecogniserSettings(kind="transformer", adapter=f"file:{out}")
    entities = TransformerRecogniser(model_folder(chosen)).entities("aspirin causes fever .")
    assert [(e.text, e.kind) for e in entities] == [("aspirin", "Chemical"), ("fever", "Disease")]


def test_killed_run_resumes_from_its_checkpoint(
    tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "store"))
    # These tests may run at the same time as others that start Ray (tests/conftest.py).
    with ray_of_its_own() as ray:
        first = start(command, ray, start_new_session=True)
        checkpoints = log_of(tmp_path).parent
        await_that(lambda: any(checkpoints.glob("*/trainer_state.json")))
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        reached = len(log_of(tmp_path).read_text().splitlines())
        done = run(command, ray)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measured"]["F1"] == 1.0
    check_learned(tmp_path / "out")
    steps = [json.loads(line)["step"] for line in log_of(tmp_path).read_text().splitlines()]
    assert steps[reached] > steps[0]


def log_of(tmp_path: Path) -> Path:
    return tmp_path / "out" / ".training" / "log.jsonl"
