"""A model with tensor parallelism of 2, served by our deployment on a CPU."""

from __future__ import annotations

import json
import sys

import pytest

from tests.end_to_end.command import run
from tests.end_to_end.greedy_tokens import PROMPTS, TOKENS

pytestmark = [pytest.mark.ray, pytest.mark.nightly]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[int]]]:
    """Return the token ids of each reply, by the number of parts."""
    folder = tmp_path_factory.mktemp("parts")
    command = [sys.executable, "-m", "tests.end_to_end.greedy_tokens", str(folder)]
    done = run(command, {"RAY_AUTH_MODE": "disabled"})
    assert done.returncode == 0, done.stderr
    found: dict[str, list[list[int]]] = json.loads((folder / TOKENS).read_text())
    return found


def test_tensor_parallel_model_gives_the_same_tokens(said: dict[str, list[list[int]]]) -> None:
    assert len(said["1"]) == len(PROMPTS) == 20
    assert said["2"] == said["1"]


def test_prompts_give_different_tokens(said: dict[str, list[list[int]]]) -> None:
    assert len({tuple(tokens) for tokens in said["1"]}) == len(PROMPTS)
