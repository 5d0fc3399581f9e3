"""Run `citeray serve` for the duration of a `with` block, and read the memory of its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from planning.measure.watch_processes import anonymous_bytes
from tests.serve.http_server import free_port

ROOT = Path(__file__).resolve().parents[1]
START_S = 600


@dataclass(frozen=True)
class Graph:
    """Running graph. `started` has the seconds until each stage was ready."""

    url: str
    process: subprocess.Popen
    started: dict[str, float]

    def processes(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def memory_mib(self) -> Counter[str]:
        """Return the PSS in MiB by kind of process, which divides shared pages among processes."""
        return self._held(lambda process: process.memory_full_info().pss)

    def anonymous_mib(self) -> Counter[str]:
        """Return the anonymous memory in MiB by kind of process, without file-backed pages."""
        return self._held(anonymous_bytes)

    def _held(self, bytes_of: Callable[[psutil.Process], int]) -> Counter[str]:
        held: Counter[str] = Counter()
        for process in self.processes():
            try:
                name = process.cmdline()[0].split(":")[-1].split("/")[-1].split(".")[0]
                held[name or "other"] += bytes_of(process) >> 20
            except (psutil.Error, IndexError):
                continue
        return held


@contextmanager
def served_graph(settings: Sequence[str]) -> Iterator[Graph]:
    port = free_port()
    overrides = [f"serve.port={port}", *settings]
    command = [str(Path(sys.executable).parent / "citeray"), "serve"]
    command += [part for one in overrides for part in ("--set", one)]
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    started: dict[str, float] = {}
    try:
        while not started.get("all"):
            if process.poll() is not None or time.monotonic() - begun > START_S:
                raise SystemExit("citeray serve does not start; run it directly to see why")
            time.sleep(0.2)
            try:
                readiness = httpx.get(f"{url}/readyz", timeout=5).json()
            except (httpx.HTTPError, ValueError):
                continue
            now = time.monotonic() - begun
            for stage, state in readiness.get("stages", {}).items():
                if state == "ready":
                    started.setdefault(stage, now)
            if readiness.get("ready"):
                started["all"] = now
        yield Graph(url, process, started)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=120)
