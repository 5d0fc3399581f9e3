"""An incremental upgrade as KubeRay performs it: new cluster, shifted weights, drained old cluster.

Each cluster has a head and a worker. The new version serves an index with another number of shards,
which a running graph cannot load.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from cluster.settings.settings import load_settings
from tests.end_to_end.command import ROOT, environment
from tests.end_to_end.several_nodes.asking import Asker, Reply, asking_at
from tests.end_to_end.several_nodes.pods import (
    NO_LOSS,
    Network,
    Pod,
    Pods,
    await_that,
    pods_on,
    require_namespaces,
)
from tests.end_to_end.several_nodes.weighted_switch import Switch, switching
from tests.end_to_end.small_graph import graph_settings, make_graphs_index
from tests.k8s import chart

# Two clusters of two nodes each start first.
pytestmark = [pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(1800)]

OLD, NEW = "old", "new"
SHARDS = {OLD: 3, NEW: 2}
NUMBERS = {OLD: (1, 2), NEW: (11, 12)}
GATEWAY = "10.77.0.254"
ASKERS = 2
# Answers to collect at each weight.
ANSWERS = 30
DRAIN_S, GRACE_S, STEP = 8, 40, 25
VALUES = {
    "service": {
        "upgrade": {
            "type": "NewClusterWithIncrementalUpgrade", "gatewayClass": "web", "stepPercent": STEP,
        },
        "drainSeconds": DRAIN_S,
        "terminationGraceSeconds": GRACE_S,
    }
}  # fmt: skip
LIGHT = ("gateway", "expander", "encoder", "writer")


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

    name: str
    pods: Pods
    settings: list[str]

    @property
    def proxy(self) -> str:
        port = load_settings(overrides=self.settings).serve.port
        return f"http://{self.pods.workers[0].address}:{port}"

    def deploy(self, *more: str) -> None:
        command = [sys.executable, "-m", "tests.end_to_end.several_nodes.graph", "deploy"]
        done = subprocess.run(
            self.pods.head.inside([*command, *self.settings, *more]),
            capture_output=True, text=True, check=False, timeout=120, cwd=ROOT,
            env=environment(self.pods.driver),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def await_ready(self, network: Network) -> None:
        def ready() -> bool:
            with network.entered():
                try:
                    return bool(httpx.get(f"{self.proxy}/readyz", timeout=10).json()["ready"])
                except (httpx.HTTPError, ValueError, KeyError):
                    return False

        await_that(ready)


@dataclass
class Rehearsed:
    """Replies at each weight, and observations of the drained worker."""

    switch: Switch
    askers: Sequence[Asker]
    steps: dict[int, list[Reply]]
    pre_stop: subprocess.CompletedProcess
    while_draining: list[int]
    ended_s: float

    def replies(self) -> list[Reply]:
        return [reply for asker in self.askers for reply in asker.replies]


def start(stack: ExitStack, network: Network, folder: Path, encoder: Path, name: str) -> Cluster:
    where = folder / name
    where.mkdir()
    settings = [*graph_settings(where, encoder), "serve.host=0.0.0.0", "serve.shard.cpus=0.1"]
    settings += [f"index.shards={SHARDS[name]}"]
    settings += [f"serve.{stage}.cpus=0.1" for stage in LIGHT]
    # With one gateway, requests of an in-place change would wait for its restart.
    settings += [f"serve.gateway.{name}=2" for name in ("min_replicas", "max_replicas")]
    make_graphs_index(where, encoder, load_settings(overrides=settings), shards=SHARDS[name])
    pods = stack.enter_context(pods_on(network, NO_LOSS, 3, numbers=NUMBERS[name]))
    cluster = Cluster(name, pods, settings)
    cluster.deploy()
    cluster.await_ready(network)
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
    proxies = {name: [cluster.proxy] for name, cluster in found.items()}
    steps: dict[int, list[Reply]] = {}
    with (
        switching(network, GATEWAY, proxies, OLD) as switch,
        asking_at([switch.url] * ASKERS, network) as askers,
    ):
        for weight in range(0, 101, STEP):
            switch.weights = {OLD: 100 - weight, NEW: weight}
            # Requests in flight were sent with the previous weights.
            marks = [len(asker.replies) + 1 for asker in askers]
            for asker, mark in zip(askers, marks, strict=True):
                await_that(lambda a=asker, m=mark: len(a.since(m)) >= ANSWERS, asker.last)
            pairs = zip(askers, marks, strict=True)
            steps[weight] = [reply for asker, mark in pairs for reply in asker.since(mark)]
        [worker] = old.pods.workers
        switch.ending.add(old.proxy)
        pre_stop, statuses = run_pre_stop(old, worker, network)
        begun = time.monotonic()
        worker.end(GRACE_S - DRAIN_S)
        ended_s = time.monotonic() - begun
        old.pods.head.end(GRACE_S)
        for asker in askers:
            asker.await_more()
    return Rehearsed(switch, askers, steps, pre_stop, statuses, ended_s)


def test_no_request_fails_until_the_old_cluster_is_gone(rehearsed: Rehearsed) -> None:
    assert [said for asker in rehearsed.askers for said in asker.unheard] == []
    assert [reply for reply in rehearsed.replies() if not reply.whole] == []
    assert len(rehearsed.replies()) >= ASKERS * ANSWERS * len(rehearsed.steps)


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
    with asking_at([new.proxy] * ASKERS, network) as askers:
        for asker in askers:
            asker.await_whole()
        new.deploy("serve.request_deadline_s=29")
        new.await_ready(network)
        for asker in askers:
            asker.await_whole()
    for asker in askers:
        assert asker.unheard == []
        assert asker.faults() == []
