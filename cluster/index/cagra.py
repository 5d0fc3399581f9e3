"""Builds a segment's graph on a GPU with CAGRA, to be stored and searched like any other HNSW.

CAGRA builds the lowest level, FAISS adds the upper ones when it copies the graph to an HNSW, and
the vectors are then stored in the index's own format. The file does not depend on CAGRA, so a
reader needs neither a GPU nor a FAISS built for one. The graph is not deterministic: compare
recall, not bytes.
"""

from __future__ import annotations

import logging
from typing import Any

import faiss
import numpy as np

from cluster.index.vectors import ADD_CHUNK, Vectors, build

LOGGER = logging.getLogger(__name__)

# A CPU builds smaller graphs in seconds and deterministically; cuVS would reduce their degree.
FEWEST_ROWS = 100_000


def on_gpu() -> bool:
    """Return whether this FAISS was built with CAGRA and sees a GPU."""
    return hasattr(faiss, "GpuIndexCagra") and faiss.get_num_gpus() > 0


def card_bytes(rows: int, dimensions: int, m: int) -> int:
    """Return an upper bound on the GPU memory of a build, in bytes, from cuVS's documentation.

    The steps run one after another: training PQ (at most on all vectors as float32), finding
    neighbours by PQ (at most one byte per dimension, and an id), and pruning the first 4m
    neighbours of each vector. The 2m that remain take 4 bytes each. 2 GiB are working space.
    """
    steps = (4 * dimensions, dimensions + 8, 4 + 5 * 4 * m)
    return 2**31 + rows * (max(steps) + 4 * 2 * m)


def host_bytes(rows: int, dimensions: int, m: int) -> int:
    """Return the host memory of a build besides the HNSW, in bytes.

    CAGRA holds the vectors once more, as float32, and 12 bytes for each of the 2m neighbours.
    """
    return rows * (4 * dimensions + 12 * 2 * m)


def build_by_cagra(empty: Any, vectors: Vectors, threads: int) -> Any:
    """Fill a trained, empty HNSW with `vectors` (n, d) float32, which may be a memory map.

    Falls back to the CPU if there are few vectors, or if the GPU lacks memory or fails.
    """
    if len(vectors) >= FEWEST_ROWS:
        faiss.omp_set_num_threads(threads)
        m = empty.hnsw.nb_neighbors(0) // 2
        try:
            _make_graph(empty, vectors, m)
        except (RuntimeError, MemoryError) as error:
            LOGGER.warning(
                "the graph of %d vectors is built on the CPU because CAGRA failed (it needs up to "
                "%.0f GiB of GPU memory; more index.shards reduce this): %s",
                len(vectors),
                card_bytes(len(vectors), vectors.shape[1], m) / 2**30,
                error,
            )
        else:
            return _store(empty, vectors)
    return build(empty, (vectors,), threads)


def _make_graph(empty: Any, vectors: Vectors, m: int) -> None:
    """Give `empty` the graph of `vectors` without the vectors; unchanged if CAGRA fails."""
    config = faiss.GpuIndexCagraConfig()
    # copyTo halves graph_degree to the HNSW's M.
    config.graph_degree = 2 * m
    config.intermediate_graph_degree = 4 * m
    config.guarantee_connectivity = True
    # The GPU is not used for searching, so it does not need to hold the vectors.
    config.store_dataset = False
    # CAGRA keeps a raw pointer to its training data, which copyTo reads: keep the array alive.
    held = np.ascontiguousarray(vectors, np.float32)
    resources = faiss.StandardGpuResources()
    gpu = faiss.GpuIndexCagra(resources, held.shape[1], faiss.METRIC_INNER_PRODUCT, config)
    gpu.train(held)
    index = faiss.IndexHNSWCagra()
    # Set this before copyTo, which uses it to add the upper levels.
    index.hnsw.efConstruction = empty.hnsw.efConstruction
    gpu.copyTo(index)
    empty.hnsw = index.hnsw


def _store(empty: Any, vectors: Vectors) -> Any:
    for begin in range(0, len(vectors), ADD_CHUNK):
        empty.storage.add(np.ascontiguousarray(vectors[begin : begin + ADD_CHUNK]))
    empty.ntotal = len(vectors)
    return empty
