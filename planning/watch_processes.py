"""What work costs by itself: run in a process of its own, its memory watched."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, ParamSpec, TypeVar

import psutil

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
EVERY_S = 0.02
TREE_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class Cost(Generic[Result]):
    """Bytes are of anonymous memory: before the work began, and at its peak."""

    result: Result
    core_seconds: float
    base_bytes: int
    peak_bytes: int


def usable_cpus() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def anonymous_bytes(process: psutil.Process) -> int:
    """Memory that no file backs, so that the kernel cannot just drop it."""
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
    """Run `work`, a module's own function, as a Ray worker would: with nothing loaded before."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_watched, partial(work, *args, **kwargs)).result()


@contextmanager
def peaks_by_role(roles: Mapping[str, str]) -> Iterator[dict[str, int]]:
    """The largest anonymous memory, in bytes, of any process of each role below this one.

    `roles` maps what a command line holds to the role; this process is the "driver", and
    "encode worker" tells all of its resident memory, since models are mapped files.
    """
    me = psutil.Process(os.getpid())
    peaks: dict[str, int] = {}

    def sample() -> None:
        for process in [me, *me.children(recursive=True)]:
            try:
                command = " ".join(process.cmdline())
                role = next((r for mark, r in roles.items() if mark in command), None)
                role = "driver" if process.pid == me.pid else role
                if role is None:
                    continue
                whole = role == "encode worker"
                used = process.memory_info().rss if whole else anonymous_bytes(process)
                peaks[role] = max(peaks.get(role, 0), int(used))
            except psutil.Error:
                continue  # it ended meanwhile

    with _sampled(sample, TREE_EVERY_S):
        yield peaks
