"""Cache of the live rows of one segment that pass given filters."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

import numpy as np
from cachetools import LRUCache

from cluster.index.filters.filters import Filters
from cluster.index.filters.read_filters import FilterColumns, SegmentFilters
from cluster.index.read_records import Rows, SegmentRecords
from cluster.index.vectors import RowSelection

# Number of filters whose rows a segment caches, at one bit per citation and per passage.
CACHED_FILTERS = 16


@dataclass(frozen=True, slots=True)
class FilteredRows:
    """`filters` in the codes of a segment, and the live `rows` that pass them."""

    filters: SegmentFilters
    rows: RowSelection


@dataclass(frozen=True, slots=True)
class PassingRows:
    """The citations and the passages of a segment that pass filters."""

    citations: FilteredRows
    passages: FilteredRows


class PassingRowsCache:
    """Finds and caches the rows of a segment that pass filters, except the `dead` ones.

    Thread-safe.
    """

    def __init__(self, columns: FilterColumns, records: SegmentRecords, dead: Rows) -> None:
        self._columns, self._records, self._dead = columns, records, dead
        self._cache: LRUCache[Filters, PassingRows] = LRUCache(CACHED_FILTERS)
        self._lock = Lock()

    def find(self, filters: Filters) -> PassingRows:
        """Return the rows that pass, from the cache if equal filters were used before."""
        with self._lock:
            found = self._cache.get(filters)
        if found is None:
            found = self._evaluate(filters)
            with self._lock:
                self._cache[filters] = found
        return found

    def _evaluate(self, filters: Filters) -> PassingRows:
        translated = self._columns.translate(filters)
        citations = self._columns.mask(translated)
        for names in filters.author_clauses():
            citations &= self._records.rows_by(names)
        if filters.design and not self._columns.tells_design:
            citations &= np.isin(self._records.designs, filters.design)
        citations[self._dead] = False
        passages = citations[self._records.passage_citation]
        return PassingRows(
            FilteredRows(translated, RowSelection(citations)),
            FilteredRows(translated, RowSelection(passages)),
        )
