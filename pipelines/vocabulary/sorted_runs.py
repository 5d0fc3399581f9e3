"""Runs of equal rows in sorted tables, and ranks of strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def run_starts(columns: Sequence[Any]) -> Rows:
    """Return the first row of each run of rows equal in all `columns` (Arrow or numpy)."""
    rows = len(columns[0])
    starts = np.zeros(rows, np.bool_)
    starts[:1] = True
    for column in columns:
        if isinstance(column, np.ndarray):
            starts[1:] |= column[1:] != column[:-1]
        elif rows:
            changed = pc.not_equal(column.slice(1), column.slice(0, rows - 1))
            starts[1:] |= changed.to_numpy(zero_copy_only=False)
    return np.flatnonzero(starts)


def run_lengths(starts: Rows, rows: int) -> Rows:
    """Return the length of each run in a table of `rows` rows."""
    return np.diff(starts, append=rows)


def ranked(columns: Sequence[Any]) -> tuple[Any, list[Rows]]:
    """Return the distinct strings of all Arrow `columns` in byte order, and each row's rank.

    Columns that are already sorted are merged, not sorted.
    """
    chunks = [chunk for column in columns for chunk in column.chunks]
    strings = pa.chunked_array(chunks, pa.large_string()).combine_chunks()
    ranks = pc.rank(strings, tiebreaker="dense").to_numpy().astype(np.int64) - 1
    bearer = np.empty(ranks.max(initial=-1) + 1, np.int64)
    bearer[ranks] = np.arange(len(ranks))
    ends = np.cumsum([len(column) for column in columns])
    return strings.take(bearer), np.split(ranks, ends[:-1])


def marked(places: Rows, size: int) -> NDArray[np.bool_]:
    """Return a mask of length `size` that is true at `places`."""
    marks = np.zeros(size, np.bool_)
    marks[places] = True
    return marks
