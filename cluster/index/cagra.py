"""Builds a segment's graph on a GPU by CAGRA, to be stored and searched like any other HNSW.

CAGRA makes the lowest level, FAISS adds the upper ones when it copies the graph to an HNSW, and
the vectors are then stored as the index wants them. What is written does not name CAGRA, so a
reader needs neither a GPU nor a FAISS that was built with one. It is not the same graph twice:
compare recall, not bytes.
"""

from __future__ import annotations

import logging
from typing import Any

import faiss
import numpy as np

from cluster.index.vectors import ADD_CHUNK, Vectors, build

LOGGER = logging.getLogger(__name__)

# A CPU makes a graph of fewer in seconds, always the same one, and cuVS would lower its degree.
FEWEST_ROWS = 100_000


def on_gpu() -> bool:
    """Whether this FAISS was built with CAGRA and sees a GPU."""
    return hasattr(faiss, "GpuIndexCagra") and faiss.get_num_gpus() > 0


def card_bytes(rows: int, dimensions: int, m: int) -> int:
    """What the card must hold at most while it builds, after cuVS's account of the build.

    Its steps come one after another: it trains PQ (on all vectors as float32, at most), finds
    neighbours by PQ (a code of a byte a dimension, at most, and an id), and prunes the 4m first
    neighbours of each vector. The 2m that stay are 4 bytes each. Two GiB are for working space.
    """
    steps = (4 * dimensions, dimensions + 8, 4 + 5 * 4 * m)
    return 2**31 + rows * (max(steps) + 4 * 2 * m)


def build_by_cagra(empty: Any, vectors: Vectors, threads: int) -> Any:
    """Fill a trained, empty HNSW with `vectors` (n, d) float32, which may be a memory map.

    Falls back to the CPU where there are few, and where the card has no room or fails. The host
    holds the vectors once more, as float32, and 12 bytes for each of the 2m neighbours.
    """
    if len(vectors) >= FEWEST_ROWS:
        faiss.omp_set_num_threads(threads)
        m = empty.hnsw.nb_neighbors(0) // 2
        try:
            _make_graph(empty, vectors, m)
        except (RuntimeError, MemoryError) as error:
            LOGGER.warning(
                "the graph of %d vectors is built on the CPU, as CAGRA failed (it wants up to "
                "%.0f GiB on the card; more index.shards make it less): %s",
                len(vectors),
                card_bytes(len(vectors), vectors.shape[1], m) / 2**30,
                error,
            )
        else:
            return _store(empty, vectors)
    return build(empty, (vectors,), threads)


def _make_graph(empty: Any, vectors: Vectors, m: int) -> None:
    """Give `empty` the graph of `vectors` but none of them; untouched where CAGRA fails."""
    config = faiss.GpuIndexCagraConfig()
    # copyTo halves graph_degree to the HNSW's M.
    config.graph_degree = 2 * m
    config.intermediate_graph_degree = 4 * m
    config.guarantee_connectivity = True
    # Nobody searches on the card, so it need not hold the vectors.
    config.store_dataset = False
    # CAGRA keeps a pointer to what it was trained on, and copyTo reads there: this keeps it alive.
    held = np.ascontiguousarray(vectors, np.float32)
    resources = faiss.StandardGpuResources()
    gpu = faiss.GpuIndexCagra(resources, held.shape[1], faiss.METRIC_INNER_PRODUCT, config)
    gpu.train(held)
    index = faiss.IndexHNSWCagra()
    # Before the copy, which adds the upper levels by it.
    index.hnsw.efConstruction = empty.hnsw.efConstruction
    gpu.copyTo(index)
    empty.hnsw = index.hnsw


def _store(empty: Any, vectors: Vectors) -> Any:
    for begin in range(0, len(vectors), ADD_CHUNK):
        empty.storage.add(np.ascontiguousarray(vectors[begin : begin + ADD_CHUNK]))
    empty.ntotal = len(vectors)
    return empty
