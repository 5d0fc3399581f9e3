"""The chart's Ray clusters on one network under its policies, started as KubeRay does.

others: store, operator, gateway ... ── bridge ──┬── index: 10.77.0.1 head, .2 worker
                                                 ├── service: 10.77.0.11 head, .12 worker
                                                 └── 10.77.0.21 submitter
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.end_to_end.command import BIN, ROOT, environment, small_settings, with_settings
from tests.end_to_end.several_nodes.nft_rules import nft_rules
from tests.end_to_end.several_nodes.pods import NO_LOSS, Network, Pod, Pods, pods_on
from tests.end_to_end.small_graph import LIGHT
from tests.end_to_end.waiting import await_that
from tests.k8s import chart
from tests.k8s.policies import OTHERS, Peer, pod
from tests.network_namespaces import Namespace

CASE = "kind"
INDEX, SERVICE, SUBMITTER, STORE = (1, 2), (11, 12), 21, 31
STORE_URL = f"http://10.77.0.{STORE}:9000"
KEYS = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything"}
# Options that KubeRay adds to every `ray start`, and to that of the head.
STARTED = ("--metrics-export-port=8080",)
DASHBOARD = ("--include-dashboard=true", "--dashboard-host=0.0.0.0")
# The peers outside the chart, and their addresses on this network.
AROUND = {
    name: replace(peer, address=peer.address or f"10.77.0.{number}")
    for number, (name, peer) in enumerate(OTHERS.items(), 100)
}
WHO = {name: peer.address for name, peer in AROUND.items()}
CALL = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()"


def policy_pods() -> dict[int, Peer]:
    """Return the chart's pods on this network by number."""
    found = chart.all_pods(CASE) | chart.all_pods(f"{CASE}/build")
    names = {
        INDEX[0]: "RayJob/citeray-build/head",
        INDEX[1]: "RayJob/citeray-build/build",
        SERVICE[0]: "RayService/citeray/head",
        SERVICE[1]: "RayService/citeray/models",
        SUBMITTER: "RayJob/citeray-build/submitter",
        STORE: "StatefulSet/citeray-object-store/replica",
    }
    return {
        number: pod(chart.NAMESPACE, found[name]["metadata"]["labels"], f"10.77.0.{number}")
        for number, name in names.items()
    }


def store_variables() -> dict[str, str]:
    """Return the variables of the chart's pods, with the store's address instead of its name."""
    head = chart.all_pods(f"{CASE}/build")["RayJob/citeray-build/head"]
    [container] = head["spec"]["containers"]
    given = {e["name"]: e["value"] for e in container["env"] if e["name"].startswith("AWS_")}
    assert given["AWS_ENDPOINT_URL"] == "http://citeray-object-store:9000"
    return {**given, **KEYS, "AWS_ENDPOINT_URL": STORE_URL}


def policy_rules() -> dict[int, str]:
    ours = policy_pods()
    objects = chart.render(chart.values_of(CASE, monitoring={"enabled": True}))
    policies = [obj for obj in objects if obj["kind"] == "NetworkPolicy"]
    pods = [*ours.values(), *AROUND.values()]
    return {number: nft_rules(policies, one, pods) for number, one in ours.items()}


class Submitter:
    """A pod with its own rules that submits jobs to the heads of Ray clusters."""

    def __init__(self, bridge: Network, stack: ExitStack, rules: str) -> None:
        self.network = Namespace()
        stack.callback(self.network.close)
        peer = f"type veth peer name submitter netns {bridge.path}"
        self.network.run("ip", "link", "add", "eth0", *peer.split())
        bridge.ip("link", "set", "submitter", "master", "bridge", "up")
        steps = f"addr add 10.77.0.{SUBMITTER}/24 dev eth0\nlink set eth0 up\n"
        steps += "route add default via 10.77.0.254"
        self.network.run("ip", "-batch", "-", given=steps)
        self.network.run("nft", "-f", "-", given=rules)

    def submit(self, cluster: Pods, entrypoint: list[str]) -> str:
        """Return the output of a job that must succeed."""
        token = {name: cluster.driver[name] for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
        address = f"http://{cluster.head.address}:8265"
        command = [str(BIN / "ray"), "job", "submit", "--address", address, "--", *entrypoint]
        with self.network.entered():
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment(token), text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        said, _ = process.communicate(timeout=500)
        assert process.returncode == 0, said
        return said


@dataclass
class Clusters:
    """Both Ray clusters, their network, and a pod that submits jobs."""

    network: Network
    index: Pods
    service: Pods
    submitter: Submitter
    overrides: list[str]
    settings: Path

    def client(self, source: str) -> httpx.Client:
        """Return a client with that address, for a thread that has entered the network."""
        transport = httpx.HTTPTransport(local_address=source)
        return httpx.Client(transport=transport, timeout=60)

    def get(self, source: str, url: str) -> httpx.Response:
        with self.network.entered(), self.client(source) as client:
            return client.get(url)

    def reaches(self, source: str, target: str, port: int) -> bool:
        """Return whether a peer outside Ray can connect."""
        call = CALL.replace(", 1)", f", 1, ('{source}', 0))")
        with self.network.entered():
            return ended_well([sys.executable, "-c", call, target, str(port)])

    def index_command(self, *words: str) -> list[str]:
        command = [sys.executable, "-m", "commands.cli", "index", *words]
        config = ["--config", str(self.settings), "--json"]
        return with_settings([*command, *config], self.overrides)

    def deploy(self) -> None:
        """Send Serve's configuration to the head as the operator does."""
        service = chart.named(CASE, "RayService", "citeray")
        config = yaml.safe_load(service["spec"]["serveConfigV2"])
        for application in config["applications"]:
            given = dict(override.split("=", 1) for override in self.overrides)
            application["args"] = {"config": str(self.settings), **given}
        token = self.service.driver["RAY_AUTH_TOKEN"]
        url = f"http://{self.service.head.address}:8265/api/serve/applications/"
        with self.network.entered(), self.client(WHO["operator"]) as client:
            reply = client.put(url, json=config, headers={"Authorization": f"Bearer {token}"})
        assert reply.status_code == 200, reply.text

    def await_version(self, source: str, version: str) -> None:
        said = ""

        def served() -> bool:
            nonlocal said
            reply = self.get(source, f"http://{self.service.workers[0].address}:8000/readyz")
            said = reply.text
            return reply.json()["ready"] and set(reply.json()["versions"].values()) == {version}

        await_that(served, lambda: said, starting=True)


def ended_well(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def pod_reaches(pod: Pod, target: str, port: int) -> bool:
    return ended_well(pod.inside([sys.executable, "-c", CALL, target, str(port)]))


def refused(pod: Pod) -> dict[str, set[tuple[str, int]]]:
    """Return the refused outgoing and incoming connections of the pod, with ports."""
    found = {}
    for way in ("egress", "ingress"):
        command = ["nft", "-j", "list", "set", "inet", "policies", f"refused_{way}"]
        done = subprocess.run(pod.inside(command), capture_output=True, text=True, check=True)
        [held] = [part["set"] for part in json.loads(done.stdout)["nftables"] if "set" in part]
        calls = [element["concat"] for element in held.get("elem", [])]
        found[way] = {(address, port) for address, _, port in calls}
    return found


@contextmanager
def object_store(network: Network, bucket: str) -> Iterator[None]:
    command = [sys.executable, "-m", "moto.server", "-H", f"10.77.0.{STORE}", "-p", "9000"]
    with network.entered():
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def made() -> bool:
        with network.entered():
            return httpx.put(f"{STORE_URL}/{bucket}").is_success

    try:
        await_that(made, starting=True)
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def chart_clusters(folder: Path, encoder: Path) -> Iterator[Clusters]:
    """Start both clusters under the chart's policies; all other peers have the addresses of WHO."""
    text = chart.settings_text(CASE)
    found = re.search(r"path: (s3://([^/]+)/\S+)", text)
    assert found
    settings = folder / "settings.yaml"
    settings.write_text(text)
    rules = policy_rules()
    with ExitStack() as stack:
        network = Network()
        stack.callback(network.close)
        for address in (*WHO.values(), f"10.77.0.{STORE}"):
            network.ip("addr", "add", f"{address}/32", "dev", "bridge")
        stack.enter_context(object_store(network, found[2]))
        submitter = Submitter(network, stack, rules[SUBMITTER])
        options: dict[str, Any] = {"rules": rules, "head_options": (*STARTED, *DASHBOARD)}
        more = {**NO_LOSS, **store_variables()}
        started = (
            pods_on(network, more, 2, numbers=INDEX, worker_options=STARTED, **options),
            pods_on(
                network, more, 3, numbers=SERVICE,
                worker_options=(*STARTED, "--labels=citeray/pool=models"), **options,
            ),
        )  # fmt: skip
        index, service = (stack.enter_context(cluster) for cluster in started)
        overrides = [*small_settings(Path("unused"), encoder, 2), f"index.path={found[1]}"]
        overrides += [f"index.cache={folder / 'cache'}", "serve.follow_s=1"]
        overrides += [f"serve.batches.folder={folder / 'batches'}", "encoder.actors=1"]
        overrides += [f"serve.saved.url=sqlite:///{folder / 'saved.db'}", "serve.shard.cpus=0.5"]
        overrides += [f"serve.{stage}.cpus=0.1" for stage in LIGHT]
        yield Clusters(network, index, service, submitter, overrides, settings)
