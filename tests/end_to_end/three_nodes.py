"""A build on a cluster of three nodes of this machine, of which one is lost on the way.

    python -m tests.end_to_end.three_nodes FOLDER

FOLDER/built.json tells on how many nodes encoders and shard tasks ran, and what the driver
opened and wrote. A process of its own: Ray reads how it authenticates when it is imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from cluster.index.manifest import read_manifest
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation, Deletion
from pipelines.build.find_sources import find_sources
from tests.end_to_end.command import ROOT, environment, small_settings, with_settings
from tests.end_to_end.index_jobs import write_corpus
from tests.end_to_end.two_nodes import descendants
from tests.tiny_models import make_tiny_encoder

BUILT = "built.json"
SHARDS = 6
DEADLINE_S = 500
STEPS = {"encoders": "EmbedAndStage", "shards": "_shard_task"}


@dataclass
class Observed:
    """The processes that each raylet had, and the driver's files and bytes."""

    workers: dict[int, int] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    written: int = 0

    def look(self, raylets: list[int], driver: int) -> None:
        for raylet in raylets:
            self.workers.update((pid, raylet) for pid in descendants(raylet))
        try:
            links = [os.readlink(link) for link in Path(f"/proc/{driver}/fd").iterdir()]
            mapped = Path(f"/proc/{driver}/maps").read_text().splitlines()
            facts = Path(f"/proc/{driver}/io").read_text().splitlines()
        except OSError:
            return
        self.opened.update(links, (line.split()[-1] for line in mapped))
        self.written = max(self.written, int(facts[1].split()[1]))

    def nodes(self, logs: Path) -> dict[str, int]:
        """On how many nodes each step ran: workers log what they take up, however short it is."""
        found: dict[str, set[int]] = {step: set() for step in STEPS}
        for log in logs.glob("worker-*.out"):
            raylet = self.workers.get(int(log.stem.rpartition("-")[2]))
            text = log.read_text(errors="replace")
            for step, name in STEPS.items():
                if raylet is not None and name in text:
                    found[step].add(raylet)
        return {step: len(raylets) for step, raylets in found.items()}


def raylet_of(node: Any) -> int:
    (process,) = node.all_processes["raylet"]
    return int(process.process.pid)


def run_build(cluster: Cluster, nodes: list[Any], folder: Path) -> dict[str, Any]:
    corpus = write_corpus(folder / "pubmed")
    index = folder / "index"
    settings = small_settings(index, make_tiny_encoder(folder), SHARDS)
    words = [sys.executable, "-m", "commands.cli", "index", "build", str(corpus.folder), "--json"]
    command = with_settings(words, [*settings, "encoder.actors=3"])
    address = {"RAY_ADDRESS": cluster.address, "RAY_AUTH_MODE": "disabled"}
    log = folder / "log"
    begun, observed, lost = time.monotonic(), Observed(), False
    raylets = [raylet_of(node) for node in nodes]
    with log.open("wb") as stream:
        driver = subprocess.Popen(
            command, cwd=ROOT, env=environment(address), stdout=stream, stderr=stream
        )
        while driver.poll() is None and time.monotonic() - begun < DEADLINE_S:
            observed.look(raylets, driver.pid)
            if not lost and list(index.glob("staging/*/*/part-*")):
                cluster.remove_node(nodes[-1], allow_graceful=False)
                lost = True
            time.sleep(0.01)
        driver.kill()
    sizes = [p.stat().st_size for p in (index / "segments").rglob("*") if p.is_file()]
    code = driver.wait()
    return {
        "code": code,
        "said": log.read_text(errors="replace"),
        "lost": lost,
        "nodes": observed.nodes(Path(cluster.head_node.get_logs_dir_path())),
        "opened": sorted(p for p in observed.opened if p.startswith(str(index))),
        "written": observed.written,
        "segment_bytes": sum(sizes),
        "citations": read_manifest(index).citations if code == 0 else 0,
        "expected": live_citations(corpus.folder),
    }


def live_citations(folder: Path) -> int:
    live: set[int] = set()
    for path in find_sources([str(folder)]):
        for record in read_records(path):
            if isinstance(record, Citation):
                live.add(record.pmid)
            elif isinstance(record, Deletion):
                live.discard(record.pmid)
    return len(live)


def main(folder: Path) -> None:
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 128 << 20},
    )
    try:
        more = [cluster.add_node(num_cpus=1, object_store_memory=128 << 20) for _ in range(2)]
        built = run_build(cluster, [cluster.head_node, *more], folder)
        # Ray prints too, so what is read by a test has a file of its own.
        (folder / BUILT).write_text(json.dumps(built))
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
