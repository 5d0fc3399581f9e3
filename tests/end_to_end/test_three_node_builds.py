"""A build over three nodes, one of which is lost on the way."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster.index.layout import CITATIONS, PASSAGES, VECTORS
from tests.end_to_end.command import run
from tests.end_to_end.three_nodes import BUILT

pytestmark = [pytest.mark.durability, pytest.mark.ray, pytest.mark.nightly]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("three")
    command = [sys.executable, "-m", "tests.end_to_end.three_nodes", str(folder)]
    done = run(command, {"RAY_AUTH_MODE": "disabled"})
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / BUILT).read_text())
    return found


def test_a_build_that_loses_a_node_ends_well(built: dict[str, Any]) -> None:
    assert built["lost"]
    assert built["code"] == 0, built["said"]
    assert built["citations"] == built["expected"] > 0


def test_the_work_is_done_on_nodes_and_spread_where_it_lasts(built: dict[str, Any]) -> None:
    assert built["nodes"]["encoders"] > 1
    # The first worker that is there may do all of these, as each takes no time.
    assert built["nodes"]["shards"] >= 1


def test_the_driver_opens_no_text_and_no_vector_of_a_segment(built: dict[str, Any]) -> None:
    big = {CITATIONS, PASSAGES, VECTORS}
    assert [p for p in built["opened"] if "/segments/" in p and Path(p).name in big] == []


def test_the_driver_writes_a_small_part_of_what_is_published(built: dict[str, Any]) -> None:
    assert built["written"] < built["segment_bytes"] / 2
