"""Measure the cost of adding a passage to a large HNSW graph without building one.

The cost grows with ln n, and faster once the graph exceeds the CPU caches. A small graph does not
show this, and building a large one takes hours. Therefore a small graph is built and copied: the
copies of a vector are as far from it as its neighbours are, and each link leads to a random copy of
its target. Adding to this graph takes as many comparisons and as much memory as adding to a real
graph of the same size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import faiss
import numpy as np

from cluster.index import vectors
from cluster.index.write_segment import SegmentPlan
from planning.measure.sample_corpus import StandIn
from planning.measure.watch_processes import core_seconds

# The largest graph of a calibration corresponds to a shard of 250,000 citations.
COPIES = (1, 2, 4, 8, 24)
ADDED = 1500
ASKED = 300
# Factor for the squared distance of copies, because neighbours are nearer in a larger graph.
NEARER = 0.7


def measure_hnsw(
    stand_in: StandIn, plan: SegmentPlan, size: int, copies: Sequence[int] = COPIES
) -> list[tuple[float, float]]:
    """Return points of (n, core seconds to add one passage to a graph of n passages).

    The first points are for the chunks by which the graph grows to `size`, the others for copies.
    """
    graph, base = vectors.load_quantiser(plan.quantiser), stand_in.vectors(size)
    found = []
    for begin in range(0, size, vectors.ADD_CHUNK):
        chunk = base[begin : begin + vectors.ADD_CHUNK]
        found.append((begin + len(chunk) / 2, _seconds_each(graph, chunk)))
    products, _ = graph.search(base[:ASKED], 2)
    apart = math.sqrt(NEARER * float(np.median(np.maximum(2 - 2 * products[:, 1], 0.0))))
    for count in copies:
        large = copied(graph, base, plan, count, stand_in, apart)
        added = stand_in.vectors(min(ADDED, size), -count % 2**32)
        found.append((float(size * count), _seconds_each(large, added)))
    return found


def _seconds_each(graph: Any, added: vectors.Vectors) -> float:
    # With several threads, the time in which they wait for each other would count as work.
    return core_seconds(partial(vectors.build, graph, [added], 1))[1] / len(added)


def copied(
    graph: Any, base: vectors.Vectors, plan: SegmentPlan, count: int, others: StandIn, apart: float
) -> Any:
    """Return a graph of `count` copies of `graph`, whose links lead to random copies.

    A copy of a vector of `base` is moved by the distance `apart` towards one of the `others`.
    """
    rng = np.random.default_rng(count)
    size, large = len(base), vectors.load_quantiser(plan.quantiser)
    storage = faiss.downcast_index(large.storage)
    storage.add(base)
    for copy in range(1, count):
        moved = base + apart * others.vectors(size, copy)
        storage.add(moved / np.linalg.norm(moved, axis=1, keepdims=True))
    levels = faiss.vector_to_array(graph.hnsw.levels)
    faiss.copy_array_to_vector(np.tile(levels, count), large.hnsw.levels)
    large.hnsw.prepare_level_tab(size * count, True)
    links, room = (_links(g) for g in (graph, large))
    for part in np.split(room, count):
        anywhere = links + size * rng.integers(0, count, len(links), np.int32)
        part[:] = np.where(links < 0, links, anywhere)
    large.hnsw.max_level, large.hnsw.entry_point = graph.hnsw.max_level, graph.hnsw.entry_point
    large.ntotal = size * count
    return large


def _links(graph: Any) -> Any:
    """Return a view of the links of all nodes in FAISS's memory (int32); -1 means no link."""
    held = graph.hnsw.neighbors
    return faiss.rev_swig_ptr(held.data(), held.size())
