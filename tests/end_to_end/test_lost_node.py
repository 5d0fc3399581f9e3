"""The graph on three Ray nodes, one of which is lost while it answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import ray_of_its_own, run
from tests.end_to_end.lose_node import SURVIVED
from tests.end_to_end.small_graph import SHARDS, WHOLE

pytestmark = [pytest.mark.ray, pytest.mark.nightly]


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> dict[str, Any]:
    """What came of it; replies are (status, Retry-After, body)."""
    folder = tmp_path_factory.mktemp("nodes")
    command = [sys.executable, "-m", "tests.end_to_end.lose_node", str(folder), str(encoder)]
    with ray_of_its_own() as own:
        done = run(command, {**own, "RAY_AUTH_MODE": "disabled"})
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / SURVIVED).read_text())
    return found


def test_while_a_node_is_lost_each_request_is_answered_or_told_when_to_come_back(
    survived: dict[str, Any],
) -> None:
    replies = survived["asked"]["replies"]
    assert survived["asked"]["lost"] == []
    assert {status for status, _, _ in replies} <= {200, 503}
    assert all(after for status, after, _ in replies if status == 503)


def test_an_answer_without_the_lost_shards_says_so(survived: dict[str, Any]) -> None:
    assert survived["shards_lost"] > 0
    found = [body for status, _, body in survived["asked"]["replies"] if status == 200 and body]
    partial = [body for body in found if body["coverage"] != WHOLE]
    assert partial
    assert all(body["degraded"] for body in partial)


def test_the_shards_come_back_on_the_nodes_that_are_left(survived: dict[str, Any]) -> None:
    assert survived["last"]["coverage"] == WHOLE
    assert len(survived["left"]) == 2
    for number in range(SHARDS):
        [node] = survived["nodes"][f"Shard-{number:04d}"]
        assert node in survived["left"]
