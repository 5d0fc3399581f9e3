"""Admission, autoscaling and shutdown fit each other in every shipped configuration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cluster.errors import InputError
from cluster.settings.limits import (
    STAGES,
    limit_problems,
    longest_request_s,
    model_slots,
    questions_at_once,
    shutdown_s,
    target_ongoing,
)
from cluster.settings.settings import Settings, load_settings

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[3]
CONFIGS = [path for path in sorted((ROOT / "configs").glob("*.yaml")) if path.stem != "models"]
VALUES = [
    path
    for path in sorted((ROOT / "k8s").glob("values*.yaml"))
    if (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("settings")
]


def settings_of(path: Path, folder: Path) -> Settings:
    """Load a settings file, or the settings of a values file of the chart."""
    if path.parent.name == "configs":
        return load_settings(path.name)
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))["settings"]
    file = folder / path.name
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return load_settings(file)


@pytest.mark.parametrize("path", CONFIGS + VALUES, ids=lambda path: path.stem)
def test_shipped_limits_fit_each_other(path: Path, tmp_path: Path) -> None:
    settings = settings_of(path, tmp_path)
    assert limit_problems(settings) == []
    gateway, at_once = settings.serve.gateway, questions_at_once(settings)
    few, most = model_slots(settings)
    assert gateway.min_replicas * at_once >= few
    assert gateway.max_replicas * at_once >= most
    assert target_ongoing(settings, "gateway") < at_once + settings.serve.http.waiting
    deadlines = [getattr(settings.serve, name).deadline_s for name in STAGES]
    assert shutdown_s(settings) >= max(settings.serve.request_deadline_s, *deadlines)


def test_pods_end_after_their_questions(tmp_path: Path) -> None:
    service = yaml.safe_load((ROOT / "k8s/values.yaml").read_text(encoding="utf-8"))["service"]
    longest = max(longest_request_s(settings_of(path, tmp_path)) for path in VALUES)
    assert service["terminationGraceSeconds"] > service["drainSeconds"] >= longest
    assert service["deletionDelaySeconds"] >= longest


def test_explicit_limits_have_precedence() -> None:
    own = load_settings(
        "cluster.yaml",
        ["serve.http.at_once=40", "serve.drain_s=99", "serve.gateway.target_ongoing=9"],
    )
    found = questions_at_once(own), shutdown_s(own), target_ongoing(own, "gateway")
    assert found == (40, 99, 9)
    assert limit_problems(own) == []
    with pytest.raises(InputError, match=r"--set: serve\.http\.at_once: must be more than 0"):
        load_settings(None, ["serve.http.at_once=0"])


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("serve.http.at_once=8", "answers 64 requests at a time .*2 gateways process 16 questions"),
        ("serve.writer.max_ongoing=8", "64 requests at a time .*2 writers process 16"),
        ("serve.gateway.max_ongoing=40", "less than the 48 questions that a gateway admits"),
        ("serve.llm.max_ongoing=32", "serve.llm.max_ongoing 32 is less than llm.max_concurrent 64"),
        ("serve.gateway.target_ongoing=64", "serve.gateway: .*target of 64 .*at most 48"),
        ("serve.encoder.target_ongoing=40", "serve.encoder: .*target of 40 .*by 7 .*at most 36.5"),
        ("serve.drain_s=20", "serve.drain_s 20: .*up to 80 s"),
    ],
)
def test_broken_limit_is_explained(override: str, said: str) -> None:
    problems = limit_problems(load_settings("cluster.yaml", [override]))
    assert any(re.search(said, problem) for problem in problems), problems
