"""Reads the filterable columns of a segment, to find the citations that pass filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster.arrow_records import map_table
from cluster.errors import IndexFormatError
from cluster.index.filters.filters import FLAGS, Filters
from cluster.index.filters.write_filters import FLAG_BITS

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SegmentFilters:
    """Filters in the codes of one segment; `clauses` are list columns, each with codes of which one
    must match.

    A clause without codes admits no citation, because the segment holds none of its values.
    `by_rows` is True if the columns do not cover all filters, so that records have to be read.
    """

    year_from: int | None
    year_to: int | None
    flags: Mapping[str, bool]
    clauses: tuple[tuple[str, tuple[int, ...]], ...]
    by_rows: bool = False


class FilterColumns:
    """The memory-mapped file FILTERS of a segment. Raises IndexFormatError if it is missing."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise IndexFormatError(f"{path}: missing from the index; build it again or restore it")
        table = map_table(path)
        self._batches = table.to_batches()
        # Segments written by older versions have no column of designs.
        self.tells_design = "design" in table.schema.names

    def translate(self, filters: Filters) -> SegmentFilters:
        """Return `filters` in this segment's codes."""
        flags = {name: getattr(filters, name) for name in FLAGS}
        last = filters.last_day
        return SegmentFilters(
            filters.year_from,
            last.year if last else None,
            {name: wanted for name, wanted in flags.items() if wanted is not None},
            tuple(
                (name, self._codes(name, values))
                for name, values in filters.clauses()
                if name != "design" or self.tells_design
            ),
            bool(filters.authors) or (bool(filters.design) and not self.tells_design),
        )

    def _codes(self, name: str, values: tuple[str, ...]) -> tuple[int, ...]:
        dictionary = self._dictionary(name)
        if dictionary is None:
            return ()
        found = pc.index_in(pa.array(values, pa.string()), value_set=dictionary)
        return tuple(found.drop_null().to_pylist())

    def _dictionary(self, name: str) -> pa.StringArray | None:
        if not self._batches:
            return None
        # In an Arrow file every batch has the complete, final dictionary.
        return self._batches[-1].column(name).values.dictionary

    def holds(self, name: str, value: str) -> bool:
        """Return whether any citation of the segment, live or not, has `value` in a list column."""
        return bool(self._codes(name, (value,)))

    def flagged(self, name: str) -> Mask:
        """Return which citation rows have a flag, one of FLAG_BITS."""
        parts = [batch.column("flags").to_numpy() & FLAG_BITS[name] != 0 for batch in self._batches]
        return np.concatenate([np.empty(0, np.bool_), *parts])

    def values(self, name: str) -> list[str]:
        """Return the distinct values of a list column, in the order of their codes."""
        dictionary = self._dictionary(name)
        return [] if dictionary is None else list(dictionary.to_pylist())

    def mask(self, filters: SegmentFilters) -> Mask:
        """Return whether each citation row passes; reads only the filtered columns."""
        parts = [_mask_batch(batch, filters) for batch in self._batches]
        return np.concatenate(parts) if parts else np.empty(0, np.bool_)


def _mask_batch(batch: pa.RecordBatch, filters: SegmentFilters) -> Mask:
    mask = np.ones(len(batch), np.bool_)
    if filters.year_from is not None or filters.year_to is not None:
        years = pc.fill_null(batch.column("year"), -1).to_numpy()
        mask &= years >= (filters.year_from or 0)
        mask &= years <= (filters.year_to or np.iinfo(np.int16).max)
    flags = batch.column("flags").to_numpy()
    for name, wanted in filters.flags.items():
        mask &= (flags & FLAG_BITS[name] != 0) == wanted
    for name, codes in filters.clauses:
        mask &= _rows_with(batch.column(name), codes)
    return mask


def _rows_with(lists: pa.ListArray, codes: tuple[int, ...]) -> Mask:
    rows = np.zeros(len(lists), np.bool_)
    items = lists.flatten()
    if not codes or not len(items):
        return rows
    wanted = np.zeros(len(items.dictionary), np.bool_)
    wanted[list(codes)] = True
    offsets = lists.offsets.to_numpy() - lists.offsets[0].as_py()
    chosen = np.flatnonzero(wanted[items.indices.to_numpy()])
    rows[np.searchsorted(offsets, chosen, side="right") - 1] = True
    return rows
