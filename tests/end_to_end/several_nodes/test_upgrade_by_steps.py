"""An incremental upgrade as KubeRay performs it: new cluster, shifted weights, drained old cluster.

Each cluster has a head and a worker. The new version serves an index with another number of shards,
which a running graph cannot load.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from cluster.settings.settings import load_settings
from tests.end_to_end.command import environment
from tests.end_to_end.several_nodes.asking import Asker, Reply, asking_at
from tests.end_to_end.several_nodes.pods import (
    NO_LOSS,
    Network,
    Pod,
    Pods,
    pods_on,
    require_namespaces,
)
from tests.end_to_end.several_nodes.weighted_switch import switching
from tests.end_to_end.small_graph import (
    ON_NODES,
    TWO_GATEWAYS,
    graph_settings,
    make_graphs_index,
)
from tests.end_to_end.waiting import await_that
from tests.k8s import chart

# Two clusters of two nodes each start first.
pytestmark = [pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(1800)]

OLD, NEW = "old", "new"
SHARDS = {OLD: 3, NEW: 2}
NUMBERS = {OLD: (1, 2), NEW: (11, 12)}
ASKERS = 2
# Answers to collect at each weight.
ANSWERS = 30
DRAIN_S, GRACE_S, STEP = 8, 40, 25
WEIGHTS = range(0, 101, STEP)
VALUES = {
    "service": {
        "upgrade": {
            "type": "NewClusterWithIncrementalUpgrade", "gatewayClass": "web", "stepPercent": STEP,
        },
        "drainSeconds": DRAIN_S,
        "terminationGraceSeconds": GRACE_S,
    }
}  # fmt: skip


def rendered_pod() -> dict[str, Any]:
    """A worker's pod as the chart renders it."""
    objects = chart.render(chart.values_of("pubmed", **VALUES))
    [service] = [obj for obj in objects if obj["kind"] == "RayService"]
    template = chart.groups(service)["models"]["template"]
    assert template["spec"]["terminationGracePeriodSeconds"] == GRACE_S
    return template


@dataclass
class Cluster:
    """A Ray cluster that serves the graph over its own index."""

    pods: Pods
    settings: list[str]

    @property
    def proxy(self) -> str:
        port = load_settings(overrides=self.settings).serve.port
        return f"http://{self.pods.workers[0].address}:{port}"

    def deploy(self, network: Network, *more: str) -> None:
        """Deploy the graph, with `more` settings, and wait until it is ready."""

        def ready() -> bool:
            with network.entered():
                return bool(httpx.get(f"{self.proxy}/readyz", timeout=10).json()["ready"])

        self.pods.deploy([*self.settings, *more])
        await_that(ready, starting=True)


@dataclass
class Rehearsed:
    """All replies, and observations of the drained worker."""

    askers: Sequence[Asker]
    pre_stop: subprocess.CompletedProcess
    while_draining: list[int]
    ended_s: float

    def replies(self) -> list[Reply]:
        return [reply for asker in self.askers for reply in asker.replies]


def start(stack: ExitStack, network: Network, folder: Path, encoder: Path, name: str) -> Cluster:
    where = folder / name
    where.mkdir()
    settings = [*graph_settings(where, encoder), *ON_NODES, "serve.shard.cpus=0.1"]
    # With one gateway, requests of an in-place change would wait for its restart.
    settings += [f"index.shards={SHARDS[name]}", *TWO_GATEWAYS]
    make_graphs_index(where, encoder, load_settings(overrides=settings), shards=SHARDS[name])
    pods = stack.enter_context(pods_on(network, NO_LOSS, 3, numbers=NUMBERS[name]))
    cluster = Cluster(pods, settings)
    cluster.deploy(network)
    return cluster


def run_pre_stop(cluster: Cluster, worker: Pod, network: Network) -> tuple[Any, list[int]]:
    """Run the chart's pre-stop hook; return its result and the proxy's health statuses."""
    [container] = rendered_pod()["spec"]["containers"]
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    statuses = []
    process = subprocess.Popen(
        worker.inside(command), env=environment(cluster.pods.driver), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    while process.poll() is None:
        with network.entered():
            statuses.append(httpx.get(f"{cluster.proxy}/-/healthz", timeout=5).status_code)
        time.sleep(0.5)
    said, _ = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, said), statuses


@pytest.fixture(scope="module")
def clusters(
    tmp_path_factory: pytest.TempPathFactory, encoder: Path
) -> Iterator[tuple[Network, dict[str, Cluster]]]:
    require_namespaces()
    folder = tmp_path_factory.mktemp("upgrade")
    with ExitStack() as stack:
        network = Network()
        stack.callback(network.close)
        yield network, {n: start(stack, network, folder, encoder, n) for n in (OLD, NEW)}


@pytest.fixture(scope="module")
def rehearsed(clusters: tuple[Network, dict[str, Cluster]]) -> Rehearsed:
    network, found = clusters
    old = found[OLD]
    proxies = {name: cluster.proxy for name, cluster in found.items()}
    with (
        switching(network, proxies, OLD) as switch,
        asking_at([switch.choose] * ASKERS, network) as askers,
    ):
        for weight in WEIGHTS:
            switch.weights = {OLD: 100 - weight, NEW: weight}
            # Requests in flight were sent with the previous weights.
            marks = [len(asker.replies) + 1 for asker in askers]
            for asker, mark in zip(askers, marks, strict=True):
                await_that(lambda a=asker, m=mark: len(a.since(m)) >= ANSWERS, asker.last)
        [worker] = old.pods.workers
        switch.ending.add(old.proxy)
        pre_stop, statuses = run_pre_stop(old, worker, network)
        begun = time.monotonic()
        worker.end(GRACE_S - DRAIN_S)
        ended_s = time.monotonic() - begun
        old.pods.head.end(GRACE_S)
        for asker in askers:
            asker.await_more()
    return Rehearsed(askers, pre_stop, statuses, ended_s)


def test_no_request_fails_until_the_old_cluster_is_gone(rehearsed: Rehearsed) -> None:
    assert [said for asker in rehearsed.askers for said in asker.unheard] == []
    assert [reply for reply in rehearsed.replies() if not reply.whole] == []
    assert len(rehearsed.replies()) >= ASKERS * ANSWERS * len(WEIGHTS)


def test_pre_stop_hook_drains_the_worker_and_its_health_check_fails(rehearsed: Rehearsed) -> None:
    assert rehearsed.pre_stop.returncode == 0, rehearsed.pre_stop.stdout
    assert "Error" not in rehearsed.pre_stop.stdout
    assert rehearsed.while_draining[0] == 200
    assert rehearsed.while_draining[-1] == 503
    assert rehearsed.ended_s < GRACE_S - DRAIN_S


def test_in_place_change_loses_no_request(
    rehearsed: Rehearsed, clusters: tuple[Network, dict[str, Cluster]]
) -> None:
    """A change of only Serve's configuration replaces the replicas one by one."""
    network, found = clusters
    new = found[NEW]
    with asking_at([lambda: new.proxy] * ASKERS, network) as askers:
        for asker in askers:
            asker.await_whole()
        new.deploy(network, "serve.request_deadline_s=29")
        for asker in askers:
            asker.await_whole()
    for asker in askers:
        assert asker.unheard == []
        assert asker.faults() == []
