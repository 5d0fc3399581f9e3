"""Equal rows stand side by side in a sorted table: where each run of them begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def run_starts(columns: Sequence[Any]) -> Rows:
    """The first row of each run of rows that are equal in all `columns` (Arrow or numpy)."""
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
    """How many of `rows` rows each run has."""
    return np.diff(starts, append=rows)


def ranked(columns: Sequence[Any]) -> tuple[Any, list[Rows]]:
    """The distinct strings of all Arrow `columns` in byte order, and each row's place there.

    Columns that are sorted already cost little: a merge, not a sort.
    """
    chunks = [chunk for column in columns for chunk in column.chunks]
    strings = pa.chunked_array(chunks, pa.large_string()).combine_chunks()
    ranks = pc.rank(strings, tiebreaker="dense").to_numpy().astype(np.int64) - 1
    bearer = np.empty(ranks.max(initial=-1) + 1, np.int64)
    bearer[ranks] = np.arange(len(ranks))
    ends = np.cumsum([len(column) for column in columns])
    return strings.take(bearer), np.split(ranks, ends[:-1])


def marked(places: Rows, size: int) -> NDArray[np.bool_]:
    """Which of `size` places are among `places`."""
    marks = np.zeros(size, np.bool_)
    marks[places] = True
    return marks
