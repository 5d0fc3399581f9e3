"""Tables of the number of citations and of passages that hold each term, sorted by term.

Counts of disjoint sets of units can be added, so those of a version are the sum over its
segments. Units that an update replaces or removes have negative counts.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa

from cluster.arrow_records import map_table
from cluster.errors import IndexFormatError

Over = Literal["citations", "passages"]
OVER: tuple[Over, Over] = ("citations", "passages")
TERMS_SCHEMA = pa.schema([("term", pa.large_string()), *((over, pa.int64()) for over in OVER)])
# Created from an empty list of batches, because an empty array of Python objects makes Arrow import
# pandas.
NO_TERMS = pa.Table.from_batches([], TERMS_SCHEMA)
# Maximum number of distinct terms that are counted in a Python dictionary before they are moved to
# a table.
HELD_TERMS = 200_000
# Number of terms of the longest table that are merged at once.
MERGED_TERMS = 200_000


class TermCounter:
    """Counts the units that hold each term; memory grows with the number of distinct terms."""

    def __init__(self) -> None:
        self._held: dict[str, Counter[str]] = {over: Counter() for over in OVER}
        self._tables: list[pa.Table] = []

    def add(self, over: str, terms: Iterable[str]) -> None:
        """Count a unit of `over` "citations" or "passages" with the given `terms`."""
        held = self._held[over]
        held.update(set(terms))
        if len(held) > HELD_TERMS:
            self._flush()

    def table(self) -> pa.Table:
        """Return the counts so far, in TERMS_SCHEMA."""
        self._flush()
        return merge_terms(self._tables)

    def _flush(self) -> None:
        names = sorted(set().union(*self._held.values()))
        if not names:
            return
        columns = [[held[name] for name in names] for held in self._held.values()]
        self._tables.append(pa.table([names, *columns], schema=TERMS_SCHEMA))
        for held in self._held.values():
            held.clear()
        # Merge tables of similar size, so that each row is merged O(log n) times.
        while len(self._tables) > 1 and len(self._tables[-2]) <= 2 * len(self._tables[-1]):
            last = self._tables.pop()
            self._tables[-1] = merge_terms([self._tables[-1], last])


def negated(table: pa.Table) -> pa.Table:
    """Return the table with negated counts, so that a merge subtracts them."""
    columns = [pa.compute.negate(table[over]) for over in OVER]
    return pa.table([table["term"], *columns], schema=TERMS_SCHEMA)


def merge_terms(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the sums of `tables`, without terms whose sums are all zero."""
    return pa.Table.from_batches(merged_batches(tables), TERMS_SCHEMA).combine_chunks()


def merged_batches(tables: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Yield the result of `merge_terms` by ranges of terms; mapped tables stay on disk."""
    longest = max(tables, key=len, default=NO_TERMS)
    rows = range(MERGED_TERMS, len(longest), MERGED_TERMS)
    bounds = [longest["term"][row].as_py() for row in rows]
    begins = [0] * len(tables)
    for bound in (*bounds, None):
        ends = [len(t) if bound is None else place_of(t, bound) for t in tables]
        parts = [
            t.slice(begin, end - begin) for t, begin, end in zip(tables, begins, ends, strict=True)
        ]
        yield from _sums(pa.concat_tables(parts) if parts else NO_TERMS).to_batches()
        begins = ends


def _sums(rows: pa.Table) -> pa.Table:
    grouped = rows.group_by("term", use_threads=False)
    sums = grouped.aggregate([(over, "sum") for over in OVER])
    sums = sums.select(["term", *(f"{over}_sum" for over in OVER)]).rename_columns(
        TERMS_SCHEMA.names
    )
    counted = pa.compute.or_(*(pa.compute.not_equal(sums[over], 0) for over in OVER))
    # Arrow sorts strings by their UTF-8 bytes, which equals Python's order of code points.
    return sums.filter(counted).sort_by("term").cast(TERMS_SCHEMA).combine_chunks()


def place_of(table: pa.Table, term: str) -> int:
    """Return the row of `term` in a sorted table, or its insertion point."""
    return bisect.bisect_left(table["term"], term, key=lambda name: name.as_py())


def frequency_of(tables: Sequence[pa.Table], term: str, over: str) -> int:
    """Return the number of units of `over` that hold `term`, summed over `tables`."""
    found = 0
    for table in tables:
        row = place_of(table, term)
        if row < len(table) and table["term"][row].as_py() == term:
            found += table[over][row].as_py()
    return found


def write_terms(batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Write batches of TERMS_SCHEMA, sorted across all batches, to one Arrow file."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, TERMS_SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)


def map_terms(path: Path) -> pa.Table:
    """Map a table written by `write_terms`. Raises IndexFormatError if it is not one."""
    try:
        table = map_table(path)
    except (OSError, pa.ArrowException) as error:
        raise IndexFormatError(
            f"{path}: cannot be read as term counts ({error}); build the index again"
        ) from error
    if table.schema != TERMS_SCHEMA:
        raise IndexFormatError(
            f"{path}: not term counts of this version (columns {table.schema.names}); "
            "build the index again"
        )
    return table
