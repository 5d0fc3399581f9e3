"""The terms of each unit as numbers, so that a unit can be scored without its text.

tantivy exposes neither term frequencies nor exact lengths of documents, and analysing the texts
of all candidates again would dominate the time of a BM25 search.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from cluster.arrow_records import RowTaker, map_table
from cluster.errors import IndexFormatError

BAGS = "bags.arrow"
_SCHEMA = pa.schema([("terms", pa.list_(pa.uint32()))])
_BATCH = 2000
Rows = NDArray[np.int64]


def numbered(terms: Sequence[str]) -> list[int]:
    """Return the 32-bit number of each term, in order; part of the index format.

    One in 4 billion pairs of terms shares a number, so about one in a few million searches counts
    one occurrence too many.
    """
    return [crc32(term.encode()) for term in terms]


class BagWriter:
    """Writes the terms of consecutive units to the file BAGS in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / BAGS
        self._writer = ipc.new_file(self._path, _SCHEMA)
        self._waiting: list[list[int]] = []

    def add(self, terms: Sequence[str]) -> None:
        """Add the terms of the next unit, in order."""
        self._waiting.append(numbered(terms))
        if len(self._waiting) == _BATCH:
            self._write()

    def close(self) -> None:
        """Write the pending units, which completes the file."""
        self._write()
        self._writer.close()

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_batch(pa.record_batch([self._waiting], schema=_SCHEMA))
            self._waiting = []


class Bags:
    """Reads the memory-mapped file BAGS. Raises IndexFormatError if it is not a valid file."""

    def __init__(self, directory: Path) -> None:
        path = directory / BAGS
        try:
            table = map_table(path)
        except (OSError, pa.ArrowException) as error:
            raise IndexFormatError(f"{path}: not a term file; build the index again") from error
        if table.schema != _SCHEMA:
            raise IndexFormatError(f"{path}: not a term file; build the index again")
        self._rows = RowTaker(table)
        self.units = table.num_rows

    def of(self, rows: Rows) -> tuple[NDArray[np.uint32], Rows]:
        """Return the concatenated terms of `rows`, and the number of terms of each row."""
        lists = self._rows.take(rows).column("terms").combine_chunks()
        counts = np.diff(lists.offsets.to_numpy()).astype(np.int64)
        return np.asarray(lists.flatten().to_numpy(), np.uint32), counts

    def count(self, rows: Rows, terms: Sequence[str]) -> tuple[NDArray[np.int64], Rows]:
        """Return the counts (n, terms) of `terms` in `rows`, and the lengths (n,) of `rows`."""
        flat, lengths = self.of(rows)
        numbers = np.array(numbered(terms), np.uint32)
        order = np.argsort(numbers)
        places = np.minimum(np.searchsorted(numbers[order], flat), len(numbers) - 1)
        hits = np.flatnonzero(numbers[order][places] == flat)
        owners = np.searchsorted(np.cumsum(lengths), hits, side="right")
        cells = owners * len(numbers) + order[places[hits]]
        found = np.bincount(cells, minlength=len(rows) * len(numbers))
        return found.reshape(len(rows), len(numbers)).astype(np.int64), lengths
