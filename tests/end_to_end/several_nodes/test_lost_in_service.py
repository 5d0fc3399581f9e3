"""The graph over three nodes, that loses its head, a worker, and a worker's network."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.settings import Settings, load_settings
from tests.end_to_end.command import ROOT, environment
from tests.end_to_end.several_nodes.asking import Asker, asking
from tests.end_to_end.several_nodes.pods import Pod, Pods, await_that, pods
from tests.end_to_end.small_graph import SHARDS, graph_settings, make_graphs_index

ON_WORKERS = ("gateway", "expander", "encoder", "reranker", "writer")
STAGES = [*map(str.title, ON_WORKERS), *(f"Shard-{n:04d}" for n in range(SHARDS))]
Placed = dict[str, list[list]]


@dataclass(frozen=True)
class Graph:
    pods: Pods
    folder: Path
    settings: Settings

    def tool(self, *words: str) -> None:
        """The graph's tool, run to its end in the head's pod."""
        command = [sys.executable, "-m", "tests.end_to_end.several_nodes.graph", *words]
        done = subprocess.run(
            self.pods.head.inside(command),
            capture_output=True, text=True, check=False, timeout=120, cwd=ROOT,
            env=environment(self.pods.driver),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def placed(self) -> Placed:
        """The address and the process of each deployment's replicas."""
        self.tool("placed", str(self.folder / "placed.json"))
        found: Placed = json.loads((self.folder / "placed.json").read_text())
        return found

    def asking(self) -> Iterator[dict[int, Asker]]:
        return asking(self.pods.workers, self.settings.serve.port)

    def with_most_shards(self) -> Pod:
        return max(self.pods.workers, key=lambda pod: self.shards_on(pod))

    def shards_on(self, pod: Pod) -> int:
        return sum(
            address == pod.address
            for name, replicas in self.placed().items()
            if name.startswith("Shard")
            for address, _ in replicas
        )


def await_whole(askers: dict[int, Asker]) -> None:
    for asker in askers.values():
        asker.await_whole()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[Graph]:
    folder = tmp_path_factory.mktemp("pods")
    overrides = [*graph_settings(folder, encoder), "serve.host=0.0.0.0"]
    overrides += [f"serve.gateway.{name}=2" for name in ("min_replicas", "max_replicas")]
    overrides += ["serve.gateway.per_node=1"]
    # What wants no CPU may be put on the head, and is lost with it.
    overrides += [f"serve.{stage}.cpus=0.1" for stage in ON_WORKERS]
    settings = load_settings(overrides=overrides)
    make_graphs_index(folder, encoder, settings)
    kept = {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(folder / "gcs")}
    # Or workers end that have not heard from a head for a minute.
    kept["RAY_gcs_rpc_server_reconnect_timeout_s"] = "600"
    with pods(kept, cpus=SHARDS + 1) as found:
        served = Graph(found, folder, settings)
        served.tool("deploy", *overrides)
        with served.asking() as askers:
            await_whole(askers)
        yield served


def test_answers_go_on_while_the_head_is_away_and_nothing_is_started_anew(graph: Graph) -> None:
    before = graph.placed()
    with graph.asking() as askers:
        await_whole(askers)
        graph.pods.head.kill()
        for asker in askers.values():
            asker.await_more()
        graph.pods.start_head()
        graph.pods.head.await_started()
        await_whole(askers)
    for asker in askers.values():
        assert asker.unheard == []
        assert [reply for reply in asker.replies if not reply.whole] == []
    # What was on the head comes back.
    await_that(lambda: all(graph.placed().values()))
    after = graph.placed()
    assert {name: after[name] for name in STAGES} == {name: before[name] for name in STAGES}


def test_while_a_node_is_lost_the_others_answer_and_say_what_they_lack(graph: Graph) -> None:
    victim = graph.with_most_shards()
    with graph.asking() as askers:
        await_whole(askers)
        lost = askers.pop(victim.number)
        [left] = askers.values()
        mark = len(left.replies)
        victim.kill()
        await_that(lambda: any(reply.partial for reply in left.since(mark)), left.last)
        await_whole(askers)
        assert left.faults() == []
        assert left.unheard == []
        graph.pods.require_workers()
        await_whole({victim.number: lost})
    assert all(r.body["degraded"] for r in left.replies if r.partial)


def test_while_a_network_is_cut_the_others_answer_and_say_what_they_lack(graph: Graph) -> None:
    victim = graph.with_most_shards()
    with graph.asking() as askers:
        await_whole(askers)
        lost = askers.pop(victim.number)
        [left] = askers.values()
        mark, given_up = len(left.replies), graph.pods.lost()
        victim.cut()
        await_that(lambda: any(reply.partial for reply in left.since(mark)), left.last)
        await_that(lambda: graph.pods.lost() > given_up)
        victim.mend()
        await_whole(askers)
        assert left.faults() == []
        assert left.unheard == []
        await_that(lambda: not victim.runs())
        graph.pods.require_workers()
        await_whole({victim.number: lost})
    assert all(r.body["degraded"] for r in left.replies if r.partial)
