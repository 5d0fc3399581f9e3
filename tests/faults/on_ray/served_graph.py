"""A small graph that `citeray serve` runs on its own Ray, and its processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from cluster.settings.settings import load_settings
from tests.end_to_end.command import BIN, ROOT, ray_of_its_own, start, with_settings
from tests.end_to_end.small_graph import graph_settings, make_graphs_index
from tests.end_to_end.two_nodes import descendants, kill, title_of
from tests.end_to_end.waiting import await_that
from tests.faults.on_ray.callers import ASKED, Asked, difference, reply_to
from tests.serve.http_server import free_port

SHARDS = 2
# Timeout for the recovery of a graph. On a busy machine one Ray process takes half a minute to
# start.
WHOLE_S = 240.0
STOP_S = 90.0
REPLICA = "ray::ServeReplica:citeray:"
# Beginning of the command line of each victim.
TITLES = {
    "gateway": f"{REPLICA}Gateway",
    "encoder": f"{REPLICA}Encoder",
    "expander": f"{REPLICA}Expander",
    "writer": f"{REPLICA}Writer",
    **{f"shard {number}": f"{REPLICA}Shard-{number:04d}" for number in range(SHARDS)},
    "proxy": "ray::ProxyActor",
    "controller": "ray::ServeController",
}


class Model:
    """The process of the language model, which nothing restarts by itself."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self._command = [sys.executable, "-m", "tests.faults.on_ray.scripted_model", str(port)]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, cwd=ROOT, stdin=subprocess.PIPE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class ServedGraph:
    """A serving graph; `references` has the undisturbed answer to each of ASKED."""

    url: str
    command: subprocess.Popen
    model: Model
    log: Path
    references: dict[Asked, Any] = field(default_factory=dict)

    def pids(self, victim: str) -> list[int]:
        """Return the process ids of a victim: normally one, none or two while it is restarted."""
        if victim == "model":
            return [self.model.process.pid]
        below = descendants(self.command.pid)
        return [pid for pid in below if title_of(pid).startswith(TITLES[victim])]

    def what_lacks(self) -> str:
        """Return why the graph has not recovered yet, or ""."""
        for victim in TITLES:
            if len(found := self.pids(victim)) != 1:
                return f"{len(found)} processes of {victim}"
        with httpx.Client(base_url=self.url, timeout=30) as http:
            try:
                ready = http.get("/readyz")
            except httpx.HTTPError as error:
                return f"/readyz: {error!r}"
            if ready.status_code != 200:
                return f"/readyz: {ready.text[:300]}"
            for asked in ASKED:
                reply = reply_to(asked, http)
                if reply.status != 200:
                    return f"{asked}: {reply.summary} {reply.lost}"
                if other := difference(reply.body, self.references[asked]):
                    return f"{asked}: {other} {reply.losses}"
        return ""

    def await_whole(self, seconds: float = WHOLE_S) -> str:
        """Wait for recovery; return what is still missing after `seconds`."""
        end = time.monotonic() + seconds
        while (lacks := self.what_lacks()) and time.monotonic() < end:
            self.require_running()
            time.sleep(0.3)
        return lacks

    def require_running(self) -> None:
        assert self.command.poll() is None, self.log.read_text(errors="replace")

    def is_ready(self) -> bool:
        self.require_running()
        return httpx.get(f"{self.url}/readyz", timeout=10).status_code == 200

    def refer(self) -> None:
        """Record as reference for each question an undisturbed answer that was given twice."""
        with httpx.Client(base_url=self.url, timeout=60) as http:
            for asked in ASKED:
                found: list[Any] = [{}, {}]

                def twice(asked: Asked = asked, found: list[Any] = found) -> bool:
                    replies = [reply_to(asked, http) for _ in range(2)]
                    found[:] = [reply.body for reply in replies]
                    whole = all(reply.summary == "whole" for reply in replies)
                    return whole and not difference(*found)

                await_that(twice, lambda asked=asked: f"no undisturbed answer to {asked}")
                self.references[asked] = found[0]


@contextmanager
def served_graph(folder: Path, encoder: Path) -> Iterator[ServedGraph]:
    """Start the graph, yield it once it answers completely, and stop it with the block."""
    model = Model(free_port())
    overrides = [*graph_settings(folder, encoder), "serve.shard.cpus=0"]
    overrides += ["llm.kind=url", f"llm.url={model.url}", "llm.model_id=m"]
    settings = load_settings(overrides=overrides)
    make_graphs_index(folder, encoder, settings, SHARDS)
    log = folder / "serve.log"
    with ray_of_its_own() as own, log.open("wb") as out:
        words = with_settings([str(BIN / "citeray"), "serve"], overrides)
        command = start(words, own, stdout=out, stderr=out)
        graph = ServedGraph(f"http://127.0.0.1:{settings.serve.port}", command, model, log)
        try:
            await_that(graph.is_ready, log.read_text, every_s=0.3, starting=True)
            graph.refer()
            yield graph
        finally:
            model.kill()
            below = descendants(command.pid)
            command.send_signal(signal.SIGTERM)
            try:
                command.wait(STOP_S)
            except subprocess.TimeoutExpired:
                kill([command.pid, *below])
                command.wait()
