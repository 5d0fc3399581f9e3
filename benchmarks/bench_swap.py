"""Measure failures, latency and memory of a serving graph across many index versions.

    python -m benchmarks.bench_swap [--citations N] [--swaps N] [--clients N]

Serves an index of generated citations with random vectors on its own Ray instance, and publishes
updates of 500 records and pruned compactions in turn while clients search without pause. Prints
failed requests, latency in milliseconds during and between swaps, and the memory in MB of each
shard's process: PSS divides shared pages among their processes, private counts unshared pages only.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from benchmarks.publish_generated import WIDTH, build, compact, update
from benchmarks.smallest import parse_arguments
from cluster.index.manifest import EncoderEntry, Manifest
from cluster.models.store import checksum
from cluster.ray.session import ray_session
from cluster.settings.settings import Settings, load_settings
from pipelines.sample.generate_citations import generate_citations
from serve.app import deploy, stop
from tests.end_to_end.command import small_settings
from tests.serve.http_server import free_port
from tests.tiny_models import make_tiny_encoder

SMALLEST = "--citations 400 --swaps 2 --clients 1"

SHARDS = 2
SAMPLE_S = 0.2
SETTLE_S = 2.0
UPDATED = 500


@dataclass(frozen=True)
class Request:
    """A request of a client. `degraded` lists degradations of the answer, such as a late stage."""

    begun: float
    seconds: float
    answered: bool
    degraded: tuple[str, ...]


class Load:
    """Clients that search without a pause."""

    def __init__(self, url: str, questions: Sequence[str], clients: int) -> None:
        self.requests: list[Request] = []
        self._url = url
        self._questions = questions
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        with httpx.Client(timeout=120) as client:
            while not self._stopped.is_set():
                number += 1
                question = self._questions[number % len(self._questions)]
                begun = time.monotonic()
                answered, degraded = False, ()
                try:
                    body = {"question": question, "system": "hybrid"}
                    reply = client.post(f"{self._url}/v1/search", json=body)
                    answered, degraded = reply.is_success, tuple(reply.json().get("degraded", ()))
                except (httpx.HTTPError, ValueError):
                    pass
                seconds = time.monotonic() - begun
                self.requests.append(Request(begun, seconds, answered, degraded))


class Memory:
    """Samples of PSS and private memory in MB of each shard's process, taken in a thread."""

    def __init__(self) -> None:
        every = [(p, " ".join(p.info["cmdline"] or ())) for p in psutil.process_iter(["cmdline"])]
        self._processes = {
            shard[1]: process
            for process, title in every
            if (shard := re.search(r"citeray:(Shard-\d+)", title))
        }
        self.samples: list[tuple[float, str, float, float]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            for name, process in self._processes.items():
                held = process.memory_full_info()
                self.samples.append((time.monotonic(), name, held.pss / 2**20, held.uss / 2**20))

    def between(self, begin: float, end: float) -> dict[str, tuple[float, float]]:
        """Return the largest (PSS, private) of each process from `begin` to `end`."""
        found: dict[str, tuple[float, float]] = {}
        for at, name, pss, private in list(self.samples):
            if begin <= at <= end:
                before = found.get(name, (0.0, 0.0))
                found[name] = (max(before[0], pss), max(before[1], private))
        return found


def await_ready(url: str, version: str) -> None:
    while True:
        try:
            found: dict[str, Any] = httpx.get(f"{url}/readyz", timeout=30).json()
            if found["ready"] and set(found["versions"].values()) == {version}:
                return
        except (httpx.HTTPError, ValueError, KeyError):
            pass
        time.sleep(0.1)


def show_latency(name: str, seconds: Sequence[float]) -> None:
    if seconds:
        middle, high = np.percentile(np.asarray(seconds) * 1000, [50, 99])
        print(f"{name}: {len(seconds)} requests, p50 {middle:.0f} ms, p99 {high:.0f} ms")


def show_memory(name: str, found: dict[str, tuple[float, float]]) -> None:
    parts = [f"{n} PSS {p:.1f} private {q:.1f}" for n, (p, q) in sorted(found.items())]
    print(f"  {name}: {', '.join(parts)} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--citations", type=int, default=50_000)
    parser.add_argument("--swaps", type=int, default=20)
    parser.add_argument("--clients", type=int, default=2)
    chosen = parse_arguments(parser, SMALLEST)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = make_tiny_encoder(folder)
        overrides = small_settings(folder / "index", model, SHARDS)
        overrides += [f"serve.port={free_port()}", "serve.follow_s=1", "index.hnsw_m=16"]
        overrides += ["index.vectors=sq8", "index.ef_construction=40"]
        settings = load_settings(overrides=overrides)
        encoder = EncoderEntry(
            model=settings.encoder.model, sha256=checksum(model), dimensions=WIDTH, max_tokens=64
        )
        # Build in a separate process, so that it does not hold the GIL of the clients.
        with ProcessPoolExecutor(1, get_context("spawn")) as writer, ray_session(settings.ray):
            first = writer.submit(build, settings, encoder, chosen.citations).result()
            swap(settings, first, writer, chosen.swaps, chosen.clients)
            stop(drain_s=0)


def swap(
    settings: Settings, first: Manifest, writer: ProcessPoolExecutor, swaps: int, clients: int
) -> None:
    """Serve `first`, then `swaps` further versions, alternately updates and compactions."""
    size = sum(a.bytes for s in first.segments for a in s.artefacts.values()) / len(first.shards)
    print(f"{first.citations} citations, {first.passages} passages, {size / 1e6:.0f} MB a shard")
    deploy(settings)
    url = f"http://{settings.serve.host}:{settings.serve.port}"
    await_ready(url, first.version)
    questions = [c.title for c in generate_citations(200, 1)]
    during: list[tuple[float, float]] = []
    after: list[dict[str, tuple[float, float]]] = []
    manifest = first
    with Load(url, questions, clients) as load, Memory() as memory:
        time.sleep(3 * SETTLE_S)
        show_memory("before", memory.between(time.monotonic() - SETTLE_S, time.monotonic()))
        for number in range(1, swaps + 1):
            work = next_update(number) if number % 2 else compact
            manifest = writer.submit(work, settings, manifest).result()
            begun = time.monotonic()
            await_ready(url, manifest.version)
            during.append((begun, time.monotonic()))
            time.sleep(SETTLE_S)
            after.append(memory.between(during[-1][1] + SETTLE_S / 2, time.monotonic()))
            name = "an update" if number % 2 else "a compaction"
            print(f"{manifest.version} by {name}, in {during[-1][1] - begun:.1f} s")
            show_memory("peak during", memory.between(*during[-1]))
            show_memory("after", after[-1])
    report(load.requests, during, after)


def next_update(number: int) -> partial[Manifest]:
    """Return the function that publishes update `number`, to be called with settings, manifest."""
    return partial(update, number=number + 1, count=UPDATED, first=1 + number * UPDATED)


def report(
    requests: Sequence[Request],
    during: Sequence[tuple[float, float]],
    after: Sequence[dict[str, tuple[float, float]]],
) -> None:
    moving = [
        any(begin <= r.begun + r.seconds and r.begun <= end for begin, end in during)
        for r in requests
    ]
    print(f"failed: {sum(not r.answered for r in requests)} of {len(requests)}")
    losses = Counter(loss for r in requests for loss in r.degraded)
    print(f"degraded: {sum(bool(r.degraded) for r in requests)}, by {dict(losses)}")
    show_latency("in swaps", [r.seconds for r, m in zip(requests, moving, strict=True) if m])
    show_latency("between", [r.seconds for r, m in zip(requests, moving, strict=True) if not m])
    for name in sorted(after[0]):
        private = [sample[name][1] for sample in after]
        slope = np.polyfit(range(len(private)), private, 1)[0]
        print(f"{name}: private after each swap {slope:+.2f} MB a swap, {private[-1]:.1f} MB last")


if __name__ == "__main__":
    main()
