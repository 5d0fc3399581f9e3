"""Rates of work, and the time in which a GPU is busy with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile


def rate(work: Callable[[], int], threads: int, seconds: float) -> float:
    """Return the units per second of `work`, which returns the number of units of one call.

    Each thread calls `work` until `seconds` have passed, at least once. All work on the GPU must
    be complete when `work` returns.
    """
    begun = time.perf_counter()

    def repeat(_: int) -> int:
        done = work()
        while time.perf_counter() - begun < seconds:
            done += work()
        return done

    with ThreadPoolExecutor(threads) as pool:
        done = sum(pool.map(repeat, range(threads)))
    return done / (time.perf_counter() - begun)


def busy_seconds(work: Callable[[], Any]) -> float:
    """Return the seconds in which the GPU runs any kernel or copy of `work`."""
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize()
    spans = [e.time_range for e in seen.events() if e.device_type == DeviceType.CUDA]
    if not spans:
        raise RuntimeError("the profiler saw no kernel on the GPU")
    return covered((span.start, span.end) for span in spans) / 1e6


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the total length of the union of `spans`."""
    total, end = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(last - max(first, end), 0.0)
        end = max(end, last)
    return total


def memory_of(device: str) -> int | None:
    """Return the memory of a GPU in bytes, or None for the CPU."""
    return None if device == "cpu" else int(torch.cuda.get_device_properties(device).total_memory)
