"""What one more passage costs a large graph, measured without building one.

An HNSW's cost grows as its steps do (ln n), and again as it leaves the caches. A small graph
shows neither, a large one takes hours, and one made with less care has fewer links. So a small one
is built as a shard's is, and copied: the copies of a vector lie about it as far off as its
neighbours do, and each link leads to any of the copies. To add to that takes as many comparisons as
to add to a graph of its size that was built (3,004 and 3,017 at 62,000 passages), and as much
memory.
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

# The largest of a calibration has the passages of a shard of 250,000 citations.
COPIES = (1, 2, 4, 8, 24)
ADDED = 1500
ASKED = 300
# Of the squared distance to the nearest neighbour; among so many more it is a little nearer.
NEARER = 0.7


def measure_hnsw(
    stand_in: StandIn, plan: SegmentPlan, size: int, copies: Sequence[int] = COPIES
) -> list[tuple[float, float]]:
    """(n, core seconds to add one passage to a graph of n), for n up to the last of `copies`.

    These are the middles of the chunks by which the graph of `size` grows, then its copies.
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
    # Threads that wait for each other keep cores busy too; one shows the work alone.
    return core_seconds(partial(vectors.build, graph, [added], 1))[1] / len(added)


def copied(
    graph: Any, base: vectors.Vectors, plan: SegmentPlan, count: int, others: StandIn, apart: float
) -> Any:
    """A graph of `count` copies of `graph`, each of whose links leads to any copy of its end.

    A copy of one of the vectors `base` is so far `apart` from it, towards one of the `others`.
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
    """The links of all nodes in FAISS's own memory, int32; -1 where there is none."""
    held = graph.hnsw.neighbors
    return faiss.rev_swig_ptr(held.data(), held.size())
