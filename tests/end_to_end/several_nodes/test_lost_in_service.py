"""A graph on three nodes that loses its head, a worker, and a worker's network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.settings.settings import Settings, load_settings
from tests.end_to_end.several_nodes.asking import Asker, asking
from tests.end_to_end.several_nodes.pods import SHARED_MODELS, Pod, Pods, pods
from tests.end_to_end.small_graph import (
    LIGHT,
    ON_NODES,
    SHARDS,
    TWO_GATEWAYS,
    graph_settings,
    make_graphs_index,
)
from tests.end_to_end.waiting import DEADLINE_S, await_that

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

STAGES = [*map(str.title, LIGHT), *(f"Shard-{n:04d}" for n in range(SHARDS))]
# Each worker has room for half of the shards, so lost shards cannot move to the other worker.
CPUS, SHARD_CPUS = 3, 1.2
AT_ONCE = 8
Placed = dict[str, list[list]]


@dataclass(frozen=True)
class Graph:
    pods: Pods
    folder: Path
    settings: Settings

    def placed(self) -> Placed:
        """Return the node address and process id of each deployment's replicas.

        Waits until every worker has its own gateway, so that none uses the other's.
        """
        gateways, file = str(len(self.pods.workers)), self.folder / "placed.json"
        words = ("tests.end_to_end.several_nodes.graph", "placed", str(file), gateways)
        self.pods.run(*words, timeout_s=DEADLINE_S)
        found: Placed = json.loads(file.read_text())
        return found

    def asking(self) -> Iterator[dict[int, Asker]]:
        return asking(self.pods.workers, self.settings.serve.port)

    @contextmanager
    def losing(self, victim: Pod) -> Iterator[Asker]:
        """Ask while the block loses a worker, and until all answers are complete again."""
        self.placed()
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
    overrides = [*graph_settings(folder, encoder), *ON_NODES, *TWO_GATEWAYS]
    # With a small limit, a proxy sends some of several concurrent requests to the other gateway.
    overrides += ["serve.gateway.per_node=1", f"serve.gateway.max_ongoing={AT_ONCE // 4}"]
    overrides += [f"serve.shard.cpus={SHARD_CPUS}"]
    settings = load_settings(overrides=overrides)
    make_graphs_index(folder, encoder, settings)
    kept = {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(folder / "gcs")}
    # By default, workers stop after a minute without a head.
    kept["RAY_gcs_rpc_server_reconnect_timeout_s"] = "600"
    with pods({**SHARED_MODELS, **kept}, cpus=CPUS) as found:
        served = Graph(found, folder, settings)
        found.deploy(overrides)
        with served.asking() as askers:
            await_whole(askers)
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
