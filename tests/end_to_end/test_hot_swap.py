"""A serving graph follows an update and a compaction and refuses a version it cannot serve."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipelines.sample.write_sample import SampleCorpus
from tests.end_to_end.command import BIN, small_settings, start, until_stopped, with_settings
from tests.end_to_end.conftest import RayHead
from tests.end_to_end.indexed import Indexed
from tests.end_to_end.waiting import await_that, meanwhile
from tests.serve.http_server import free_port

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

DELETED, ADDED = 90_000_028, 90_000_250
ASKERS = 2


@dataclass
class Graph:
    """A graph on the tests' Ray, its index, and all replies to requests sent during the test."""

    url: str
    index: Indexed
    replies: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def await_ready(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def holds() -> bool:
            nonlocal found
            found = httpx.get(f"{self.url}/readyz", timeout=30).json()
            return wanted(found)

        await_that(holds, lambda: f"{found}", seconds=300, every_s=0.2, starting=True)
        return found

    def await_version(self, version: str) -> dict[str, Any]:
        """Wait until every stage serves `version`."""
        return self.await_ready(lambda found: set(found["versions"].values()) == {version})

    def ask(self, stopped: threading.Event) -> None:
        with httpx.Client(timeout=60) as client:
            while not stopped.is_set():
                try:
                    reply = client.post(f"{self.url}/v1/search", json={"question": "metformin"})
                    self.replies.append((reply.status_code, reply.json()))
                except (httpx.HTTPError, ValueError) as error:
                    self.lost.append(repr(error))


@pytest.fixture(scope="module")
def graph(
    tmp_path_factory: pytest.TempPathFactory, sample: SampleCorpus, encoder: Path, ray_head: RayHead
) -> Iterator[Graph]:
    """Run `citeray serve` over the first source while two threads ask it continuously."""
    port = free_port()
    path = tmp_path_factory.mktemp("swapped") / "index"
    settings = [*small_settings(path, encoder, 2), f"serve.port={port}", "serve.follow_s=0.5"]
    found = Graph(f"http://127.0.0.1:{port}", Indexed(path, settings, ray_head.driver))
    found.index.json("build", str(sample.sources[0]))
    command = with_settings([str(BIN / "citeray"), "serve"], settings)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with until_stopped(start(command, ray_head.driver, **quiet), seconds=60):
        found.await_ready(lambda ready: ready["ready"])
        with meanwhile(*[found.ask] * ASKERS):
            yield found


@dataclass(frozen=True)
class Swapped:
    """Replies of `/readyz` at each step, and statuses of a deleted and an added citation."""

    graph: Graph
    first: dict[str, Any]
    updated: dict[str, Any]
    compacted: dict[str, Any]
    found: dict[int, list[int]]
    refused: dict[str, Any]


@pytest.fixture(scope="module")
def swapped(graph: Graph, sample: SampleCorpus) -> Swapped:
    def statuses() -> list[int]:
        pmids = (DELETED, ADDED)
        return [httpx.get(f"{graph.url}/v1/citations/{p}", timeout=30).status_code for p in pmids]

    first, found = graph.await_version("v000001"), {1: statuses()}
    graph.index.json("update", str(sample.sources[1]), str(sample.sources[2]))
    updated = graph.await_version("v000002")
    found[2] = statuses()
    graph.index.json("compact", "--prune")
    compacted = graph.await_version("v000003")
    found[3] = statuses()
    served = len(graph.replies)
    await_that(lambda: len(graph.replies) >= served + 2 * ASKERS)
    graph.index.json("build", str(sample.sources[0]), over=["index.shards=3"])
    refused = graph.await_ready(lambda ready: len(ready["refused"]) == len(ready["versions"]))
    return Swapped(graph, first, updated, compacted, found, refused)


def test_no_request_fails_while_versions_change(swapped: Swapped) -> None:
    assert swapped.graph.lost == []
    assert {status for status, _ in swapped.graph.replies} == {200}
    assert not [body for _, body in swapped.graph.replies if body["degraded"]]


def test_answers_come_from_each_published_version(swapped: Swapped) -> None:
    versions = {(body["index_version"], body["last_source"]) for _, body in swapped.graph.replies}
    assert versions == {
        ("v000001", "citeray26n0001.xml.gz"),
        ("v000002", "citeray26n0003.xml.gz"),
        ("v000003", "citeray26n0003.xml.gz"),
    }
    assert swapped.graph.replies[-1][1]["index_version"] == "v000003"


def test_deleted_citation_disappears_and_new_one_appears(swapped: Swapped) -> None:
    assert swapped.found == {1: [200, 404], 2: [404, 200], 3: [404, 200]}


def test_readiness_names_version_last_source_and_coverage(swapped: Swapped) -> None:
    keys = ("ready", "index_version", "last_source", "coverage", "citations", "refused")
    assert [swapped.updated[key] for key in keys] == [
        True, "v000002", "citeray26n0003.xml.gz", "2/2", 313, {},
    ]  # fmt: skip
    assert set(swapped.first["versions"]) == {"expander", "shard-0000", "shard-0001", "writer"}
    assert swapped.compacted["index_version"] == "v000003"


def test_version_that_cannot_be_served_is_reported_and_the_old_one_kept(swapped: Swapped) -> None:
    assert set(swapped.refused["versions"].values()) == {"v000003"}
    assert swapped.refused["ready"] is True
    assert swapped.refused["refused"]["shard-0000"] == (
        "v000004 is not served: it has 3 shards, the graph was started on 2; start the graph "
        "again to serve it"
    )
    reply = httpx.post(f"{swapped.graph.url}/v1/search", json={"question": "metformin"}, timeout=60)
    assert (reply.status_code, reply.json()["index_version"]) == (200, "v000003")
