"""Measure core time and peak memory of work in separate processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, ParamSpec, TypeVar

import psutil

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
EVERY_S = 0.02
TREE_EVERY_S = 0.2
ROLES = {
    "read_source_rows": "read worker",
    "EmbedAndStage": "encode worker",
    "_graph_task": "shard task",
    "_shard_task": "shard task",
    "publish_vocabulary": "vocabulary task",
}
RAYS_OWN = "ray's own"


@dataclass(frozen=True, slots=True)
class Cost(Generic[Result]):
    """Cost of work; bytes are anonymous memory before the work and at its peak."""

    result: Result
    core_seconds: float
    base_bytes: int
    peak_bytes: int


def core_seconds(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of `work` and the busy core seconds of this process."""
    begun = time.process_time()
    result = work()
    return result, time.process_time() - begun


def usable_cpus() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def anonymous_bytes(process: psutil.Process) -> int:
    """Return the bytes of memory not backed by files, which the kernel cannot reclaim."""
    memory = process.memory_info()
    return int(memory.rss - memory.shared)


@contextmanager
def _sampled(sample: Callable[[], None], every_s: float) -> Iterator[None]:
    stop = threading.Event()

    def loop() -> None:
        while not stop.wait(every_s):
            sample()

    thread = threading.Thread(target=loop, daemon=True)
    sample()
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sample()


def _watched(work: Callable[[], Result]) -> Cost[Result]:
    process = psutil.Process()
    base = peak = anonymous_bytes(process)

    def sample() -> None:
        nonlocal peak
        peak = max(peak, anonymous_bytes(process))

    with _sampled(sample, EVERY_S):
        begun = time.process_time()
        result = work()
        spent = time.process_time() - begun
    return Cost(result, spent, base, peak)


def in_fresh_process(
    work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Cost[Result]:
    """Run `work`, a module-level function, in a new process, and measure its cost."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_watched, partial(work, *args, **kwargs)).result()


@dataclass(slots=True)
class Tree:
    """Resources used by a process, the "driver", and its descendants.

    `peaks` is the largest anonymous memory in bytes of any process of each role; for Ray's own
    processes it is their sum. `cores` holds the busy core seconds of each process.
    """

    peaks: dict[str, int] = field(default_factory=dict)
    cores: dict[tuple[int, float], float] = field(default_factory=dict)

    @property
    def core_seconds(self) -> float:
        """Busy core seconds of all processes so far."""
        return sum(self.cores.values())

    def look(self, root: psutil.Process, mapped: Collection[str]) -> None:
        """Take one sample of `root` and its descendants.

        Roles in `mapped` count resident memory, including mapped files; others anonymous memory.
        """
        own = 0
        for process in [root, *root.children(recursive=True)]:
            try:
                role = "driver" if process == root else _role(process)
                times = process.cpu_times()
                used = process.memory_info().rss if role in mapped else anonymous_bytes(process)
            except psutil.Error:
                continue  # The process has ended.
            self.cores[process.pid, process.create_time()] = times.user + times.system
            if role == RAYS_OWN:
                own += used
            elif role:
                self.peaks[role] = max(self.peaks.get(role, 0), int(used))
        self.peaks[RAYS_OWN] = max(self.peaks.get(RAYS_OWN, 0), own)


def _role(process: psutil.Process) -> str:
    """Return the role of a process by its command line, which Ray sets; "" for an idle worker."""
    command = " ".join(process.cmdline())
    if command.startswith("ray::IDLE"):
        return ""
    return next((role for mark, role in ROLES.items() if mark in command), RAYS_OWN)


@contextmanager
def watched_tree(pid: int | None = None, mapped: Collection[str] = ()) -> Iterator[Tree]:
    """Sample a process (default: this one) and its descendants.

    For the roles in `mapped`, resident memory counts, since they work on mapped files.
    """
    root, tree = psutil.Process(pid), Tree()

    def sample() -> None:
        with suppress(psutil.Error):  # The root process has ended.
            tree.look(root, mapped)

    with _sampled(sample, TREE_EVERY_S):
        yield tree
