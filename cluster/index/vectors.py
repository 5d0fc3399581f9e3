"""Dense vectors of one segment: a FAISS HNSW index over inner products of unit vectors.

The ids in the index are the rows of passages.arrow. FAISS builds an HNSW deterministically
only for the same sequence of `add` calls, so vectors are added in chunks of a fixed size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from cluster.errors import IndexFormatError
from cluster.storage.locations import Location

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


ADD_CHUNK = 8192
# Costs of a filtered search, in units of scoring one row exactly. Skipping 25 rows that do not pass
# costs as much as scoring one row; a step along the graph costs as much as scoring 40.
SKIPPED_PER_SCORED = 25
SCORED_PER_STEP = 40
# Safety factor for the number of requested rows, because more rows than expected may fail the
# filter and repeating a search is expensive.
OVER_ASK = 1.2
# FAISS's limits apply to the whole process, so only one file is read at a time.
_READING = Lock()


def empty_index(kind: str, dimensions: int, m: int, ef_construction: int) -> Any:
    """Return an untrained, empty HNSW that stores vectors as `kind`: flat, fp16 or sq8."""
    metric = faiss.METRIC_INNER_PRODUCT
    if kind == "flat":
        index = faiss.IndexHNSWFlat(dimensions, m, metric)
    else:
        quantiser = {
            "fp16": faiss.ScalarQuantizer.QT_fp16,
            "sq8": faiss.ScalarQuantizer.QT_8bit,
        }[kind]
        index = faiss.IndexHNSWSQ(dimensions, quantiser, m, metric)
    index.hnsw.efConstruction = ef_construction
    return index


def hnsw_bytes(kind: str, rows: int, dimensions: int, m: int) -> int:
    """Return the memory of an HNSW of `rows` vectors: codes, neighbours and level of each.

    The upper levels, which hold one row in m, add m neighbours to each of their rows.
    """
    code = {"flat": 4, "fp16": 2, "sq8": 1}[kind] * dimensions
    return rows * (code + 4 * (2 * m + 1) + 16)


def save(index: Any, path: Path) -> None:
    """Write `index` to `path` in FAISS's format; not atomic."""
    faiss.write_index(index, str(path))


def load(path: Path, mapped: bool = False) -> Any:
    """Read an index whose checksum the caller has verified.

    `mapped` shares the file's pages between processes and makes the index read-only.
    """
    try:
        with _limited_to(path.stat().st_size):
            return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
    except (RuntimeError, MemoryError) as error:
        raise IndexFormatError(f"{path}: not a FAISS index; build it again") from error


def load_quantiser(file: Location) -> Any:
    """Read a trained, empty index, which is small. Raises IndexFormatError like `load`."""
    data = np.frombuffer(file.read_bytes(), np.uint8)
    try:
        with _limited_to(data.size):
            return faiss.deserialize_index(data)
    except (RuntimeError, MemoryError) as error:
        raise IndexFormatError(f"{file}: not a FAISS index; build it again") from error


@contextmanager
def _limited_to(size: int) -> Iterator[None]:
    """Reject lengths in a FAISS file that exceed the `size` of the file in bytes."""
    with _READING:
        before = faiss.get_deserialization_vector_byte_limit()
        loops_before = faiss.get_deserialization_loop_limit()
        faiss.set_deserialization_vector_byte_limit(size)
        faiss.set_deserialization_loop_limit(size)
        try:
            yield
        finally:
            faiss.set_deserialization_vector_byte_limit(before)
            faiss.set_deserialization_loop_limit(loops_before)


def _chunks_of(parts: Iterable[Vectors]) -> Iterator[Vectors]:
    """Yield the rows of `parts` in order, in chunks of ADD_CHUNK rows, the last shorter."""
    waiting: list[Vectors] = []
    rows = 0
    for part in parts:
        waiting.append(part)
        rows += len(part)
        if rows < ADD_CHUNK:
            continue
        joined = np.concatenate(waiting)
        full = rows - rows % ADD_CHUNK
        for begin in range(0, full, ADD_CHUNK):
            yield joined[begin : begin + ADD_CHUNK]
        waiting, rows = [joined[full:]], rows - full
    if rows:
        yield np.concatenate(waiting)


def build(empty: Any, parts: Iterable[Vectors], threads: int) -> Any:
    """Fill a trained, empty HNSW with the rows of `parts` (each (n, d) float32)."""
    faiss.omp_set_num_threads(threads)
    for chunk in _chunks_of(parts):
        empty.add(np.ascontiguousarray(chunk))
    return empty


def _found(rows: Rows, scores: Vectors) -> tuple[Rows, Vectors]:
    """Drop the empty entries that FAISS returns when it finds fewer rows than requested."""
    found = rows >= 0
    return rows[found], scores[found]


def live_selector(dead: Rows) -> Any:
    """Return the selector that excludes `dead` rows in `VectorIndex.search`, or None."""
    return faiss.IDSelectorNot(faiss.IDSelectorBatch(dead)) if len(dead) else None


class RowSelection:
    """The rows at which `mask` is true, as a bitmap for FAISS with one bit per row."""

    def __init__(self, mask: npt.NDArray[np.bool_]) -> None:
        self.count = int(np.count_nonzero(mask))
        # FAISS keeps only a raw pointer to the bits, so this object has to keep them alive.
        self._bits = np.packbits(mask, bitorder="little")
        self.selector = faiss.IDSelectorBitmap(self._bits)

    def holds(self, rows: Sequence[int] | Rows) -> npt.NDArray[np.bool_]:
        """Return whether each of `rows` is selected."""
        wanted = np.asarray(rows, np.int64)
        return np.asarray(self._bits[wanted >> 3] >> (wanted & 7) & 1, np.bool_)

    def rows(self) -> Rows:
        """Return all selected rows, ascending."""
        return np.asarray(np.flatnonzero(np.unpackbits(self._bits, bitorder="little")), np.int64)


class VectorIndex:
    """Searches stored vectors: a small segment exactly, a large one by its graph."""

    def __init__(self, path: Path, ef_search: int, exact_below: int) -> None:
        self._index = load(path, mapped=True)
        self._storage = faiss.downcast_index(self._index.storage)
        self._ef_search = ef_search
        self._exact = self._index.ntotal < exact_below

    @property
    def size(self) -> int:
        """Number of stored vectors, including those of dead passages."""
        return int(self._index.ntotal)

    def search(self, query: Vectors, limit: int, live: Any = None) -> tuple[Rows, Vectors]:
        """Return the rows in `live` nearest to `query` (d,) by inner product, best first."""
        limit = min(limit, self.size)
        if limit == 0:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        if self._exact:
            return self._search_exact(query, limit, live)
        return self._search_graph(query, limit, live, max(self._ef_search, limit))

    def search_among(self, query: Vectors, limit: int, among: RowSelection) -> tuple[Rows, Vectors]:
        """Search the rows in `among`, exactly or by the graph, whichever costs less.

        The graph search requests extra rows for those that are expected to fail the filter, and
        more of them until `limit` rows remain or an exact search costs less. FAISS's own selector
        is not used, because it fills the result with rows from the path to the nearest ones, so a
        search that stopped too early goes unnoticed.
        """
        limit = min(limit, among.count)
        if limit == 0:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        scan_cost = self.size / SKIPPED_PER_SCORED + among.count
        wide = OVER_ASK * max(self._ef_search, limit) * self.size / among.count
        while not self._exact and wide * SCORED_PER_STEP < scan_cost:
            asked = min(int(wide), self.size)
            rows, scores = self._search_graph(query, asked, None, asked)
            held = among.holds(rows)
            if np.count_nonzero(held) >= limit:
                return rows[held][:limit], scores[held][:limit]
            wide *= 4
        return self._search_exact(query, limit, among.selector)

    def _search_exact(self, query: Vectors, limit: int, selector: Any) -> tuple[Rows, Vectors]:
        parameters = faiss.SearchParameters(sel=selector)
        scores, rows = self._storage.search(query[None, :], limit, params=parameters)
        return _found(rows[0], scores[0])

    def _search_graph(
        self, query: Vectors, limit: int, selector: Any, ef_search: int
    ) -> tuple[Rows, Vectors]:
        # Keep the default bounded queue: without it FAISS 1.15 ignores the selector.
        parameters = faiss.SearchParametersHNSW(efSearch=ef_search, sel=selector)
        scores, rows = self._index.search(query[None, :], limit, params=parameters)
        return _found(rows[0], scores[0])

    def scores(self, query: Vectors, rows: Rows) -> Vectors:
        """Return the inner product of `query` (d,) with each of `rows`, as `search` does."""
        return np.asarray(self.stored(rows) @ query, dtype=np.float32)

    def stored(self, rows: Rows) -> Vectors:
        """Return the decoded stored vectors (n, d) of `rows`.

        Scalar-quantised values come back as the midpoints of their intervals, which are
        encoded as the same intervals again.
        """
        if len(rows) == 0:
            return np.empty((0, self._index.d), np.float32)
        stored = self._storage.reconstruct_batch(np.ascontiguousarray(rows, np.int64))
        return np.asarray(stored, np.float32)
