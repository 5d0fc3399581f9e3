"""Check that a GPU has the memory for the graphs that it builds at the same time."""

from __future__ import annotations

import math

from cluster.index.cagra import FEWEST_ROWS, gpu_bytes
from cluster.settings.settings import Settings
from planning.estimate_build import Size, on_gpus
from planning.figures import Figure
from planning.measure.coefficients import Coefficients
from planning.place_workers import Ask
from planning.units import format_bytes

MAX_SHARDS = 4096
NAME = "graphs of one GPU"


def gpu_memory(found: Coefficients, ask: Ask) -> float:
    """Return the bytes of one GPU, given or measured; NaN if they are unknown."""
    return ask.gpu_memory or (found.gpu.memory_bytes if found.gpu else None) or math.nan


def graphs_at_once(settings: Settings, ask: Ask, shards: int) -> int:
    """Return the graphs that a GPU builds at a time, by `build_gpus` and by the node's cores."""
    index = settings.index
    by_cpus = ask.node_cpus // index.build_threads // ask.gpus_per_node
    return max(min(int(1 / index.build_gpus + 1e-9), by_cpus, shards), 1)


def graph_memory(settings: Settings, size: Size, ask: Ask) -> Figure | None:
    """Return the memory of all graphs that a GPU builds at a time; None if CPUs build them."""
    if not on_gpus(settings.index, size):
        return None
    one = _one_graph(settings, size, size.shards)
    at_once = graphs_at_once(settings, ask, size.shards)
    return Figure.of(NAME, "bytes", "graphs_at_once x bytes_of_a_graph", at_once, one)


def _one_graph(settings: Settings, size: Size, shards: int) -> int:
    rows = math.ceil(size.passages / shards)
    return gpu_bytes(rows, size.dimensions, settings.index.hnsw_m)


def graph_problem(found: Coefficients, settings: Settings, size: Size, ask: Ask) -> str:
    """Return why CPUs would build the graphs, with the fewest shards that fit, or ""."""
    needed, memory = graph_memory(settings, size, ask), gpu_memory(found, ask)
    # The comparison is false if the memory is unknown.
    if needed is None or not needed.value > memory:
        return ""

    def fits(shards: int) -> bool:
        few = size.passages / shards < FEWEST_ROWS
        at_once = graphs_at_once(settings, ask, shards)
        return not few and at_once * _one_graph(settings, size, shards) <= memory

    fewest = next(filter(fits, range(1, MAX_SHARDS + 1)), None)
    mend = (
        f"at least {fewest} shards fit" if fewest
        else "no number of shards fits; set index.build_gpus to 0, or 1 for one graph at a time"
    )  # fmt: skip
    return (
        f"{NAME}: up to {format_bytes(needed.value)}, more than the {format_bytes(memory)} that it "
        f"has, so CPUs would build them; {mend}"
    )
