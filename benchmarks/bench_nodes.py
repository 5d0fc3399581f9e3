"""Compare an index build on three Ray nodes of this machine with a build on one node.

    python -m benchmarks.bench_nodes [--citations 2000] [--rounds 3] [--sizes 2000 8000 20000]

Rates: citations per second of the same generated corpus with the laptop's encoder, on one node with
three CPUs in Ray's accounting and on three nodes with one each, in turns; the physical cores are
the same. Bytes: with a tiny encoder and corpora of several sizes, the kilobytes that the driver
received as objects, and those that its TCP connections carried in both directions, counted by the
kernel (needs `ss` of iproute2).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.smallest import parse_arguments
from pipelines.sample.generate_citations import write_generated
from tests.end_to_end.command import ROOT, environment, small_settings
from tests.tiny_models import make_tiny_encoder

SMALLEST = "--citations 12 --rounds 1 --sizes 12"

CORES = 3
STORE_BYTES = 400_000_000
FILES = 6


@contextmanager
def cluster_of(nodes: int) -> Iterator[str]:
    """Start a Ray cluster of `nodes` nodes with CORES CPUs in total, and yield its address."""
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=CORES // nodes, object_store_memory=STORE_BYTES // nodes)
        cluster.wait_for_nodes()
        yield str(cluster.address)
    finally:
        cluster.shutdown()


def tcp_bytes(pid: int) -> dict[str, int]:
    """Return the bytes sent and received by each TCP connection of a process, by its endpoints."""
    listed = subprocess.run(["ss", "-tinpHO"], capture_output=True, text=True, check=False).stdout
    found = {}
    for line in listed.splitlines():
        if f"pid={pid}," in line:
            ends = " ".join(line.split()[3:5])
            counts = re.findall(r"bytes_(?:sent|received):(\d+)", line)
            found[ends] = sum(map(int, counts))
    return found


def build(sources: Path, settings: list[str], address: str) -> dict[str, float]:
    """Run a build in a new driver. Return its seconds and the bytes of objects and connections."""
    with tempfile.TemporaryDirectory(prefix="citeray-bench-") as folder:
        words = [f"index.path={folder}/index", *settings]
        command = [sys.executable, "-m", "benchmarks.bench_nodes", "--driver", str(sources)]
        process = subprocess.Popen(
            [*command, *words],
            cwd=ROOT,
            env=environment({"RAY_ADDRESS": address, "RAY_AUTH_MODE": "disabled"}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        carried: dict[str, int] = {}
        while process.poll() is None:
            carried |= tcp_bytes(process.pid)
            time.sleep(0.2)
        assert process.stdout is not None
        said = process.stdout.read()
        if process.returncode:
            raise SystemExit(f"a build failed: {said}")
        found: dict[str, float] = json.loads(said.splitlines()[-1])
        return {**found, "tcp": sum(carried.values())}


def drive(sources: str, overrides: list[str]) -> None:
    """Build in this process, counting the bytes of the objects that it receives."""
    from ray._private.worker import Worker

    from cluster.ray.session import ray_session
    from cluster.settings.settings import load_settings
    from pipelines.build.find_sources import find_sources
    from pipelines.build.jobs import build_index

    counted = {"received": 0}
    deserialise = Worker.deserialize_objects

    def counting(worker: Any, objects: Any, *rest: Any, **options: Any) -> Any:
        counted["received"] += sum(len(data) for data, *_ in objects if data is not None)
        return deserialise(worker, objects, *rest, **options)

    Worker.deserialize_objects = counting
    settings = load_settings(None, overrides)
    begun = time.perf_counter()
    with ray_session(settings.ray):
        begun = time.perf_counter()
        result = build_index(find_sources([sources]), settings, lambda _: None)
        seconds = time.perf_counter() - begun
    assert result.manifest is not None
    print(json.dumps({"seconds": seconds, "citations": result.manifest.citations, **counted}))


def compare_rates(folder: Path, citations: int, rounds: int) -> None:
    sources = folder / "rates"
    write_generated(sources, citations, per_file=-(-citations // FILES))
    settings = ["index.shards=3", "encoder.actors=2", "encoder.threads=1", "index.build_threads=1"]
    rates: dict[int, list[float]] = {1: [], 3: []}
    for _ in range(rounds):
        for nodes, found in rates.items():
            with cluster_of(nodes) as address:
                done = build(sources, settings, address)
            found.append(done["citations"] / done["seconds"])
            print(f"{nodes} nodes: {found[-1]:.1f} citations/s", flush=True)
    one, three = (statistics.median(rates[nodes]) for nodes in (1, 3))
    ratios = [b / a for a, b in zip(rates[1], rates[3], strict=True)]
    print(
        f"median {one:.1f} on one node, {three:.1f} on three: {three / one:.2f} "
        f"(rounds {', '.join(f'{ratio:.2f}' for ratio in ratios)}; target 0.9)"
    )


def show_bytes(folder: Path, sizes: list[int]) -> None:
    model = make_tiny_encoder(folder / "model")
    print("citations  sources MB  through the driver: objects KB  TCP KB")
    for size in sizes:
        sources = folder / f"bytes-{size}"
        paths = write_generated(sources, size, per_file=-(-size // FILES))
        settings = small_settings(folder / "unused", model, 3)[1:]
        with cluster_of(3) as address:
            done = build(sources, [*settings, "encoder.actors=2"], address)
        megabytes = sum(os.stat(path).st_size for path in paths) / 1e6
        print(
            f"{size:9,} {megabytes:11.2f} {done['received'] / 1e3:30.1f} {done['tcp'] / 1e3:7.1f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--citations", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[2000, 8000, 20000])
    parser.add_argument("--driver", nargs="+", metavar="WORD")
    asked = parse_arguments(parser, SMALLEST)
    if asked.driver:
        drive(asked.driver[0], asked.driver[1:])
        return
    os.environ["RAY_AUTH_MODE"] = "disabled"
    with tempfile.TemporaryDirectory(prefix="citeray-bench-") as name:
        if asked.sizes:
            show_bytes(Path(name), asked.sizes)
        if asked.rounds:
            compare_rates(Path(name), asked.citations, asked.rounds)


if __name__ == "__main__":
    main()
