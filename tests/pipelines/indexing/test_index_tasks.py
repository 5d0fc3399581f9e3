"""Resources of the tasks of a build, on a Ray that declares eight GPUs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from cluster.index.cagra import host_bytes
from cluster.index.write_segment import SegmentPlan
from pipelines.indexing.index_tasks import Graphs, on_shards, plan_here

pytestmark = pytest.mark.ray

SHARDS, ROWS = 64, 1000


@pytest.fixture(scope="module", autouse=True)
def eight_gpus() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="cr-", dir="/tmp") as folder:
        ray.init(
            address="local", num_cpus=2, num_gpus=8, object_store_memory=128 << 20,
            include_dashboard=False, log_to_driver=False, _temp_dir=folder,
        )  # fmt: skip
        yield
        ray.shutdown()


def note(step: str, index: Path, shard: int) -> dict[str, Any]:
    resources = {**ray.get_runtime_context().get_assigned_resources()}
    (index / f"{step}-{shard}.json").write_text(json.dumps(resources))
    return resources


def graph(index: Path, shard: int) -> str:
    note("graph", index, shard)
    return f"CAGRA needs too much\nfor {shard}" if shard == 7 else ""


def postings(index: Path, shard: int) -> int:
    assert (index / f"graph-{shard}.json").is_file()
    note("postings", index, shard)
    return shard


def test_gpus_are_held_for_graphs_and_not_for_postings(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = SegmentPlan(
        id="s", quantiser=tmp_path / "q", dimensions=768, bm25_over=("citations",), vectors="sq8",
        hnsw_m=32, ef_construction=100, threads=99, gpus=1,
    )  # fmt: skip
    plan = plan_here(plan)
    # A task that asks for more threads than any node has CPUs would wait forever.
    assert plan.threads == 2
    calls = [(tmp_path, shard) for shard in range(SHARDS)]
    found = on_shards(postings, calls, plan, lambda _: None, Graphs(graph, calls, ROWS))
    assert found == list(range(SHARDS))
    # One line names the only shard whose graph the CPU had to build.
    assert caplog.messages == ["shard 7: the CPU built its graph: CAGRA needs too much for 7"]
    for shard in range(SHARDS):
        of_graph, of_postings = (
            json.loads((tmp_path / f"{step}-{shard}.json").read_text())
            for step in ("graph", "postings")
        )
        assert (of_graph["CPU"], of_graph["GPU"]) == (plan.threads, 1)
        # The vectors and the neighbours that CAGRA holds on the host are part of the request.
        assert of_graph["memory"] > host_bytes(ROWS, 768, 32) >= ROWS * 768 * 4
        assert of_postings["CPU"] == 1
        assert "GPU" not in of_postings
