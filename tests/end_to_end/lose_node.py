"""Serves a graph on three Ray nodes, one of which is lost while it answers.

    python -m tests.end_to_end.lose_node FOLDER ENCODER

A process of its own, since Ray reads RAY_AUTH_MODE and RAY_TMPDIR, where it keeps all that is
its own, when it is imported or begins. What came of it is in FOLDER/survived.json.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import ray
from ray import serve as ray_serve
from ray._private.state import available_resources_per_node
from ray.cluster_utils import Cluster
from ray.serve.context import _get_global_client
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cluster.settings.settings import Settings, load_settings
from serve.app import APP, deploy, stop
from tests.end_to_end.small_graph import (
    ANSWER_S,
    ASKED,
    WHOLE,
    graph_settings,
    make_graphs_index,
)

SURVIVED = "survived.json"
DEADLINE_S = 240


@dataclass
class Asked:
    """What came of asking a graph without a pause: status, Retry-After, body; what got no reply."""

    url: str
    replies: list[tuple[int, str | None, dict[str, Any]]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def ask(self, stopped: threading.Event) -> None:
        with httpx.Client(timeout=ANSWER_S) as client:
            while not stopped.wait(0.05):
                try:
                    reply = client.post(f"{self.url}/v1/search", json=ASKED)
                    after = reply.headers.get("Retry-After")
                    self.replies.append((reply.status_code, after, reply.json()))
                    found = client.get(f"{self.url}/v1/citations/{len(self.replies) % 80 + 1}")
                    after = found.headers.get("Retry-After")
                    self.replies.append((found.status_code, after, {}))
                except (httpx.HTTPError, ValueError) as error:
                    self.lost.append(repr(error))

    def await_partial(self) -> None:
        """Until some reply lacks a shard."""
        begun = time.monotonic()
        while time.monotonic() - begun < DEADLINE_S:
            if any(body.get("coverage", WHOLE) != WHOLE for _, _, body in self.replies):
                return
            time.sleep(0.1)
        raise TimeoutError("no answer lacked the lost shards")

    def await_reply(self, wanted: Callable[[httpx.Response], bool]) -> dict[str, Any]:
        begun = time.monotonic()
        while time.monotonic() - begun < DEADLINE_S:
            try:
                reply = httpx.post(f"{self.url}/v1/search", json=ASKED, timeout=30)
                if wanted(reply):
                    found: dict[str, Any] = reply.json()
                    return found
            except httpx.HTTPError:
                pass
            time.sleep(0.3)
        raise TimeoutError(f"not so within {DEADLINE_S} s")


def whole(reply: httpx.Response) -> bool:
    return reply.is_success and reply.json()["degraded"] == []


def nodes_of_replicas() -> dict[str, list[str]]:
    """The nodes that each deployment's running replicas are on."""
    details = _get_global_client().get_serve_details()["applications"][APP]["deployments"]
    return {
        name: [r["node_id"] for r in deployment["replicas"] if r["state"] == "RUNNING"]
        for name, deployment in details.items()
    }


def shards_on(node: Any) -> int:
    placed = nodes_of_replicas()
    return sum(node.node_id in nodes for name, nodes in placed.items() if name.startswith("Shard"))


def alive_nodes() -> list[str]:
    return [node["NodeID"] for node in ray.nodes() if node["Alive"]]


def await_shards_back(lost: str) -> None:
    """Until Ray knows that node `lost` is, and each shard has one replica, on one that is left."""
    begun = time.monotonic()
    while time.monotonic() - begun < DEADLINE_S:
        left, placed = alive_nodes(), nodes_of_replicas()
        shards = [nodes for name, nodes in placed.items() if name.startswith("Shard")]
        back = all(len(nodes) == 1 and nodes[0] in left for nodes in shards)
        if back and lost not in left:
            return
        time.sleep(0.3)
    raise TimeoutError(f"the shards did not come back within {DEADLINE_S} s")


class Tenant:
    """Takes a CPU and does nothing with it."""

    def here(self) -> None:
        pass


@contextmanager
def no_room_but_on(node: str) -> Iterator[None]:
    """Every CPU of the other nodes is taken: what `node` loses comes back only afterwards.

    Otherwise a shard may be back before the first answer that lacks it.
    """
    tenant = ray.remote(Tenant)
    actors = [
        tenant.options(num_cpus=1, scheduling_strategy=_only(other)).remote()
        for other, free in available_resources_per_node().items()
        if other != node
        for _ in range(int(free.get("CPU", 0)))
    ]
    ray.get([actor.here.remote() for actor in actors])
    try:
        yield
    finally:
        for actor in actors:
            ray.kill(actor)


def _only(node: str) -> NodeAffinitySchedulingStrategy:
    return NodeAffinitySchedulingStrategy(node, soft=False)


@contextmanager
def three_nodes() -> Iterator[Cluster]:
    memory = {"object_store_memory": 128 << 20}
    head = {"num_cpus": 2, "include_dashboard": False, **memory}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(2):
            nodes.add_node(num_cpus=3, **memory)
        ray.init(address=nodes.address, log_to_driver=False)
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()


@dataclass(frozen=True)
class Survived:
    """A graph that has lost a node: what was asked meanwhile, and what it says now."""

    asked: Asked
    last: dict[str, Any]
    left: list[str]
    shards_lost: int
    nodes: dict[str, list[str]]


def lose_node(cluster: Cluster, settings: Settings) -> Survived:
    # Of one machine's nodes only one can listen at the port; elsewhere each has a proxy.
    http = {"host": settings.serve.host, "port": settings.serve.port}
    ray_serve.start(proxy_location="HeadOnly", http_options=http)
    deploy(settings)
    asked = Asked(f"http://{settings.serve.host}:{settings.serve.port}")
    asked.await_reply(whole)
    # What is in flight at a lost gateway is answered by Ray's own proxy, with 500.
    [gateway] = nodes_of_replicas()["Gateway"]
    victim = max((n for n in cluster.worker_nodes if n.node_id != gateway), key=shards_on)
    shards_lost = shards_on(victim)
    stopped = threading.Event()
    askers = [threading.Thread(target=asked.ask, args=(stopped,)) for _ in range(2)]
    try:
        for asker in askers:
            asker.start()
        while len(asked.replies) < 10:
            time.sleep(0.1)
        with no_room_but_on(victim.node_id):
            cluster.remove_node(victim, allow_graceful=False)
            asked.await_partial()
        await_shards_back(victim.node_id)
        last = asked.await_reply(whole)
    finally:
        stopped.set()
        for asker in askers:
            asker.join()
    return Survived(asked, last, alive_nodes(), shards_lost, nodes_of_replicas())


def main(folder: Path, encoder: Path) -> None:
    settings = load_settings(overrides=graph_settings(folder, encoder))
    make_graphs_index(folder, encoder, settings)
    with three_nodes() as cluster:
        try:
            # Ray prints too, so what is read by a test has a file of its own.
            (folder / SURVIVED).write_text(json.dumps(asdict(lose_node(cluster, settings))))
        finally:
            stop(drain_s=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
