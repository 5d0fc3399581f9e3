"""A graph on three nodes that loses its head, a worker, and a worker's network."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.settings.settings import Settings, load_settings
from tests.end_to_end.command import ROOT, environment
from tests.end_to_end.several_nodes.asking import Asker, asking
from tests.end_to_end.several_nodes.pods import SHARED_MODELS, Pod, Pods, await_that, pods
from tests.end_to_end.small_graph import SHARDS, graph_settings, make_graphs_index

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

ON_WORKERS = ("gateway", "expander", "encoder", "writer")
STAGES = [*map(str.title, ON_WORKERS), *(f"Shard-{n:04d}" for n in range(SHARDS))]
# Each worker has room for half of the shards, so lost shards cannot move to the other worker.
CPUS, SHARD_CPUS = 3, 1.2
AT_ONCE = 8
Placed = dict[str, list[list]]


@dataclass(frozen=True)
class Graph:
    pods: Pods
    folder: Path
    settings: Settings

    def tool(self, *words: str) -> None:
        """Run the module `graph` in the head's pod."""
        command = [sys.executable, "-m", "tests.end_to_end.several_nodes.graph", *words]
        done = subprocess.run(
            self.pods.head.inside(command),
            capture_output=True, text=True, check=False, timeout=120, cwd=ROOT,
            env=environment(self.pods.driver),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def placed(self) -> Placed:
        """Return the node address and process id of each deployment's replicas."""
        self.tool("placed", str(self.folder / "placed.json"))
        found: Placed = json.loads((self.folder / "placed.json").read_text())
        return found

    def asking(self) -> Iterator[dict[int, Asker]]:
        return asking(self.pods.workers, self.settings.serve.port)

    def await_gateways(self) -> None:
        """Wait until every worker has its own gateway, so that none uses the other's."""
        await_that(lambda: len(self.placed()["Gateway"]) == len(self.pods.workers))

    @contextmanager
    def losing(self, victim: Pod) -> Iterator[Asker]:
        """Ask while the block loses a worker, and until all answers are complete again."""
        self.await_gateways()
        with self.asking() as askers:
            await_whole(askers)
            lost = askers.pop(victim.number)
            [left] = askers.values()
            yield left
            self.pods.require_workers()
            await_whole({victim.number: lost, **askers})
        assert left.faults() == []
        assert left.unheard == []
        assert all(reply.body["degraded"] for reply in left.partial())


def await_whole(askers: dict[int, Asker]) -> None:
    for asker in askers.values():
        asker.await_whole()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[Graph]:
    folder = tmp_path_factory.mktemp("pods")
    overrides = [*graph_settings(folder, encoder), "serve.host=0.0.0.0"]
    overrides += [f"serve.gateway.{name}=2" for name in ("min_replicas", "max_replicas")]
    # With a small limit, a proxy sends some of several concurrent requests to the other gateway.
    overrides += ["serve.gateway.per_node=1", f"serve.gateway.max_ongoing={AT_ONCE // 4}"]
    # Replicas without CPUs could be placed on the head and be lost with it.
    overrides += [f"serve.{stage}.cpus=0.1" for stage in ON_WORKERS]
    overrides += [f"serve.shard.cpus={SHARD_CPUS}"]
    settings = load_settings(overrides=overrides)
    make_graphs_index(folder, encoder, settings)
    kept = {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(folder / "gcs")}
    # By default, workers stop after a minute without a head.
    kept["RAY_gcs_rpc_server_reconnect_timeout_s"] = "600"
    with pods({**SHARED_MODELS, **kept}, cpus=CPUS) as found:
        served = Graph(found, folder, settings)
        served.tool("deploy", *overrides)
        with served.asking() as askers:
            await_whole(askers)
        served.await_gateways()
        yield served


@pytest.mark.durability
def test_lost_head_interrupts_no_answer_and_restarts_no_replica(graph: Graph) -> None:
    before = graph.placed()
    with graph.asking() as askers:
        await_whole(askers)
        graph.pods.head.kill()
        for asker in askers.values():
            assert all(reply.whole for reply in asker.at_once(AT_ONCE))
            asker.await_more()
        graph.pods.start_head()
        graph.pods.head.await_started()
        await_whole(askers)
    for asker in askers.values():
        assert asker.unheard == []
        assert [reply for reply in asker.replies if not reply.whole] == []
    # Deployments on the head restart.
    await_that(lambda: all(graph.placed().values()))
    after = graph.placed()
    assert {name: after[name] for name in STAGES} == {name: before[name] for name in STAGES}


def test_killed_node_causes_partial_answers_that_are_marked(graph: Graph) -> None:
    victim, _ = graph.pods.workers
    with graph.losing(victim) as left:
        victim.kill()
        left.await_partial()


@pytest.mark.durability
def test_disconnected_node_causes_partial_answers_that_are_marked(graph: Graph) -> None:
    _, victim = graph.pods.workers
    given_up = graph.pods.lost()
    with graph.losing(victim) as left:
        victim.cut()
        left.await_partial()
        await_that(lambda: graph.pods.lost() > given_up, left.last)
        victim.mend()
        # A node that returns after it was declared dead stops by itself.
        await_that(lambda: not victim.runs(), left.last)
