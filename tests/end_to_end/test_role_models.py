"""Several language models on one cluster, one for each role."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.end_to_end.command import run
from tests.end_to_end.role_models import SAID

pytestmark = [pytest.mark.ray, pytest.mark.nightly]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("roles")
    command = [sys.executable, "-m", "tests.end_to_end.role_models", str(folder), str(encoder)]
    done = run(command, {"RAY_AUTH_MODE": "disabled"})
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads((folder / SAID).read_text())
    return found


def test_writer_and_ranker_are_two_models(said: dict[str, str]) -> None:
    assert said["writer"] != said["ranker"]


def test_completion_model_gets_no_chat_template(said: dict[str, str]) -> None:
    assert said["judge"] != said["ranker"], "the same model, by its chat form"


def test_streamed_pieces_join_to_the_whole_completion(said: dict[str, str]) -> None:
    assert said["aloud"] == said["pieces"] == said["ranker"]


def test_judge_of_the_settings_is_served_during_a_run(said: dict[str, str]) -> None:
    assert said["judge's name"].startswith("judge at file:")
    assert said["judge"]
