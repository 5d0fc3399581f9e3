"""Builds a segment's graph on a GPU with CAGRA, to be stored and searched like any other HNSW.

CAGRA builds the lowest level, FAISS adds the upper ones when it copies the graph to an HNSW, and
the vectors are then stored in the index's own format. The file does not depend on CAGRA, so a
reader needs neither a GPU nor a FAISS built for one. The graph is not deterministic: compare
recall, not bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from cluster.index.vectors import ADD_CHUNK, Vectors, build

# Smaller graphs are built on the CPU, which is fast and deterministic; cuVS would reduce their
# degree.
FEWEST_ROWS = 100_000


def on_gpu() -> bool:
    """Return whether this FAISS was built with CAGRA and sees a GPU."""
    return hasattr(faiss, "GpuIndexCagra") and faiss.get_num_gpus() > 0


def gpu_bytes(rows: int, dimensions: int, m: int) -> int:
    """Return an upper bound on the GPU memory of a build, in bytes.

    With faiss-gpu-cuvs 1.15, `GpuIndexCagra.train` keeps vectors in host memory there
    (`cuvs::neighbors::cagra::build` of a host matrix) and chooses the parameters of IVF-PQ by
    cuVS's `ivf_pq::index_params::from_dataset`. cuVS's documentation of CAGRA ("Memory footprint")
    gives the memory of three steps, which run one after another: training on a tenth of the vectors
    as float32, codes of a byte for four dimensions with an id, and pruning the first 4m neighbours
    of each vector. 4 GiB are for FAISS's temporary memory (1.5 GiB), CUDA and batches. FAISS's
    development branch copies the vectors to the GPU, which will add 4 bytes per dimension.
    """
    steps = ((4 * dimensions + 4) / 10, dimensions / 4 + 8, 4 + 5 * 4 * m)
    return 2**32 + math.ceil(rows * max(steps))


def host_bytes(rows: int, dimensions: int, m: int) -> int:
    """Return the host memory of a build besides the HNSW, in bytes.

    CAGRA also holds a copy of the vectors as float32, and 12 bytes for each of the 2m neighbours.
    """
    return rows * (4 * dimensions + 12 * 2 * m)


def build_from_parts(
    empty: Any, parts: Iterable[Vectors], threads: int, raw: Path
) -> tuple[Any, str]:
    """Fill a trained, empty HNSW with the rows of `parts` on a GPU, or on the CPU if there is none.

    Return the same as `build_by_cagra`. `raw` is a scratch file for all vectors as float32.
    """
    if not on_gpu():
        index = build(empty, parts, threads)
        few = index.ntotal < FEWEST_ROWS
        return index, "" if few else "FAISS was built without CAGRA or finds no GPU"
    # CAGRA needs all vectors at once; a memory-mapped scratch file keeps them off the heap.
    rows = 0
    with raw.open("wb") as stream:
        for part in parts:
            stream.write(part.tobytes())
            rows += len(part)
    # An empty file cannot be memory-mapped.
    shape = (rows, empty.d)
    mapped = np.memmap(raw, np.float32, "r", shape=shape) if rows else np.empty(shape, np.float32)
    built = build_by_cagra(empty, mapped, threads)
    raw.unlink()
    return built


def build_by_cagra(empty: Any, vectors: Vectors, threads: int) -> tuple[Any, str]:
    """Fill a trained, empty HNSW with `vectors` (n, d) float32, which may be a memory map.

    Return it, and why the CPU built its graph although a GPU was wanted, or "". The CPU builds the
    graphs of few vectors, and those for which the GPU lacks memory or fails.
    """
    reason = ""
    if len(vectors) >= FEWEST_ROWS:
        faiss.omp_set_num_threads(threads)
        m = empty.hnsw.nb_neighbors(0) // 2
        try:
            _make_graph(empty, vectors, m)
        except (RuntimeError, MemoryError) as error:
            needed = gpu_bytes(len(vectors), vectors.shape[1], m)
            reason = f"CAGRA needs up to {needed:,} bytes of GPU memory, {_free_memory()}: {error}"
        else:
            return _store(empty, vectors), ""
    return build(empty, (vectors,), threads), reason


def _free_memory() -> str:
    """Describe the free memory of the current GPU, which FAISS does not report."""
    import torch

    if not torch.cuda.is_available():
        return "how much is free is unknown"
    free, total = torch.cuda.mem_get_info()
    return f"{free:,} of {total:,} bytes are free"


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
