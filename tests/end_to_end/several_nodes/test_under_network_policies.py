"""A build, questions, an update and metrics on Ray nodes under the chart's network policies."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines.sample.write_sample import write_sample
from tests.end_to_end.several_nodes.chart_clusters import (
    WHO,
    Clusters,
    chart_clusters,
    pod_reaches,
    refused,
)
from tests.end_to_end.several_nodes.pods import require_namespaces

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

pytest.importorskip("moto.server")
LISTEN = """
import socket, sys
listeners = [socket.create_server((a, int(p))) for a, p in (w.split(":") for w in sys.argv[1:])]
print("listening", flush=True)
sys.stdin.read()
"""
# The name servers of this machine, in place of the cluster's.
NAME_SERVERS = re.findall(r"^nameserver (\S+)", Path("/etc/resolv.conf").read_text(), re.M)
USELESS = {(address, 53) for address in NAME_SERVERS}
# Peers outside the chart that accept connections.
OUTSIDE = {("internet", 443), ("internet", 80), ("metadata", 80)}


@dataclass(frozen=True)
class Done:
    clusters: Clusters
    built: str
    updated: str
    answers: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[Clusters]:
    require_namespaces()
    if not shutil.which("nft"):
        pytest.skip("needs nft")
    folder = tmp_path_factory.mktemp("policies")
    with chart_clusters(folder, encoder) as found:
        places = [f"{WHO[name]}:{port}" for name, port in sorted(OUTSIDE)]
        with found.network.entered():
            process = subprocess.Popen(
                [sys.executable, "-c", LISTEN, *places],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        assert process.stdout
        assert process.stdout.readline()
        yield found
        process.kill()
        process.wait()


def ask(clusters: Clusters) -> dict[str, Any]:
    url = f"http://{clusters.service.workers[0].address}:8000/v1/search"
    asked = {"question": "metformin", "system": "hybrid"}
    with clusters.network.entered(), clusters.client(WHO["gateway"]) as client:
        reply = client.post(url, json=asked)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


@pytest.fixture(scope="module")
def done(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Done:
    sources = [str(p) for p in write_sample(tmp_path_factory.mktemp("sample")).sources]
    submit = clusters.submitter.submit
    built = submit(clusters.index, clusters.index_command("build", sources[0]))
    clusters.deploy()
    clusters.await_version(WHO["gateway"], "v000001")
    answers = {"v000001": ask(clusters)}
    updated = submit(clusters.index, clusters.index_command("update", *sources[1:]))
    clusters.await_version(WHO["gateway"], "v000002")
    answers["v000002"] = ask(clusters)
    return Done(clusters, built, updated, answers)


def test_submitted_build_and_update_succeed(done: Done) -> None:
    assert '"version": "v000001"' in done.built
    assert '"version": "v000002"' in done.updated


def test_questions_are_answered_before_and_after_the_update(done: Done) -> None:
    for version, answer in done.answers.items():
        assert (answer["index_version"], answer["degraded"]) == (version, [])
        assert answer["citations"]


def test_prometheus_gets_the_metrics_of_both_clusters(done: Done) -> None:
    served = done.clusters.service.workers[0].address
    assert "ray_citeray_requests_total" in scraped(done, served)
    for pod in (done.clusters.index.workers[0], done.clusters.index.head):
        assert "ray_node_cpu_utilization" in scraped(done, pod.address)


def scraped(done: Done, address: str) -> str:
    return done.clusters.get(WHO["prometheus"], f"http://{address}:8080/metrics").text


def test_policies_allowed_the_needed_connections(done: Done) -> None:
    """Runs before the next test, which attempts connections that must be refused."""
    found = done.clusters
    # Ray asks on a head which cloud it runs in, and continues without a reply.
    cloud = {(WHO["metadata"], 80)}
    for cluster in (found.index, found.service):
        assert refused(cluster.head)["egress"] <= USELESS | cloud
        for worker in cluster.workers:
            assert refused(worker)["egress"] <= USELESS
        for pod in (cluster.head, *cluster.workers):
            assert refused(pod)["ingress"] == set()


def test_policies_refuse_other_connections(done: Done) -> None:
    found = done.clusters
    serve, index = found.service, found.index
    worker = serve.workers[0].address
    calls = {
        ("stranger", serve.head.address, 6379): False,
        ("stranger", serve.head.address, 8265): False,
        ("stranger", worker, 8000): False,
        ("stranger", worker, 8080): False,
        ("gateway", worker, 8000): True,
        ("gateway", serve.head.address, 8265): False,
        ("grafana", worker, 8080): False,
        ("prometheus", worker, 8080): True,
        ("operator", serve.head.address, 8265): True,
        ("operator", serve.head.address, 6379): False,
        ("internet", worker, 8000): False,
    }
    assert {call: found.reaches(WHO[call[0]], *call[1:]) for call in calls} == calls
    outward = {
        (WHO["internet"], 443): True,
        (WHO["internet"], 80): False,
        (WHO["metadata"], 80): False,
        (index.head.address, 6379): False,
        (serve.head.address, 6379): True,
    }
    reached = {call: pod_reaches(serve.workers[0], *call) for call in outward}
    assert reached == outward
    denied = {call for call, allowed in outward.items() if not allowed}
    assert denied <= refused(serve.workers[0])["egress"] <= denied | USELESS
