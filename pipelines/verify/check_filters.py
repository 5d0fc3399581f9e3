"""Check that a segment's postings hold its rows, and that its filters agree with its citations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tantivy

from cluster.index.bm25 import postings_of
from cluster.index.filters import post_filters
from cluster.index.filters.filters import LISTS
from cluster.index.filters.write_filters import (
    FILTER_SCHEMA,
    FLAG_BITS,
    SOURCE_COLUMNS,
    FilterEncoder,
    term_of,
)
from cluster.index.layout import CITATIONS, FILTERS, bm25_directory
from pipelines.verify.note_findings import Ints, Notes
from pipelines.verify.read_columns import UNREADABLE, integers, read_batches


class _Expected:
    """Expected number of documents of one BM25 index with each filter term and each year."""

    def __init__(self) -> None:
        self.terms: Counter[str] = Counter()
        self.years: Counter[int] = Counter()

    def add(self, rows: pa.RecordBatch, documents: Ints) -> None:
        """Count `rows` of FILTER_SCHEMA, each weighted by its number of `documents`."""
        flags = rows.column("flags").to_numpy()
        for name, bit in FLAG_BITS.items():
            self.terms[name] += int(documents[flags & bit != 0].sum())
        years = pc.fill_null(rows.column("year"), 0).to_numpy()
        for year in np.unique(years[years != 0]):
            self.years[int(year)] += int(documents[years == year].sum())
        for name in set(LISTS) & set(rows.schema.names):
            parents = pc.list_parent_indices(rows.column(name)).to_numpy()
            codes = rows.column(name).flatten().indices.to_numpy()
            # A value that a citation has twice counts once.
            pairs = np.unique(np.stack([codes, parents]).astype(np.int64), axis=1)
            found, places = np.unique(pairs[0], return_inverse=True)
            counts = np.bincount(places, documents[pairs[1]], len(found))
            for code, count in zip(found.tolist(), counts.tolist(), strict=True):
                self.terms[term_of(name, code)] += int(count)


class _UnreadableFileError(Exception):
    def __init__(self, file: str, message: str) -> None:
        super().__init__(" ".join(message.split()))
        self.file = file


def _batches(directory: Path, file: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        yield from read_batches(directory / file, columns)
    except UNREADABLE as error:
        raise _UnreadableFileError(file, str(error)) from error


def _schema_of(directory: Path) -> pa.Schema:
    """Return the expected columns; segments of older versions have no `design` column."""
    try:
        with pa.OSFile(str(directory / FILTERS)) as file:
            names = pa.ipc.open_file(file).schema.names
    except UNREADABLE as error:
        raise _UnreadableFileError(FILTERS, str(error)) from error
    kept = [field for field in FILTER_SCHEMA if field.name != "design" or field.name in names]
    return pa.schema(kept)


def check_filters(directory: Path, over: Sequence[str], passages: Ints, notes: Notes) -> None:
    """Note rows that differ from their citations, and BM25 indexes that differ from the rows.

    `over` names the BM25 indexes to check; `passages` is the number of passages of each citation.
    Memory holds one record batch at a time.
    """
    expected = {side: _Expected() for side in over}
    wrong: list[int] = []
    encoder, row = FilterEncoder(), 0
    try:
        schema = _schema_of(directory)
        stored = _batches(directory, FILTERS, schema.names)
        citations = _batches(directory, CITATIONS, ("pmid", *SOURCE_COLUMNS))
        for batch, held in zip_longest(citations, stored):
            if batch is None or held is None or len(batch) != len(held):
                notes.note("filters", "its rows do not match the citations", file=FILTERS)
                return
            if held.schema != schema:
                raise _UnreadableFileError(FILTERS, "its columns do not have the expected types")
            differs = _differing(encoder.encode(batch).select(schema.names), held)
            wrong += integers(batch, "pmid")[differs].tolist()
            own = passages[row : row + len(held)]
            for side, counts in expected.items():
                counts.add(held, own if side == "passages" else np.ones_like(own))
            row += len(held)
    except _UnreadableFileError as error:
        notes.note("unreadable", f"cannot be read: {error}", file=error.file)
        return
    if wrong:
        message = f"{len(wrong):,} rows differ from their citations"
        notes.note("filters", message, wrong, file=FILTERS)
    for side, counts in expected.items():
        _check_postings(directory, side, counts, notes)


def _differing(first: pa.RecordBatch, second: pa.RecordBatch) -> list[int]:
    """Return the rows in which two batches of FILTER_SCHEMA differ, ignoring their dictionaries."""
    if all(_plain(first, name).equals(_plain(second, name)) for name in first.schema.names):
        return []
    pairs = zip(first.to_pylist(), second.to_pylist(), strict=True)
    return [row for row, (one, other) in enumerate(pairs) if one != other]


def _plain(rows: pa.RecordBatch, name: str) -> pa.Array:
    column = rows.column(name)
    if name not in LISTS:
        return column
    lengths = np.cumsum(pc.fill_null(pc.list_value_length(column), 0).to_numpy())
    offsets = pa.array(np.append(0, lengths), pa.int32())
    return pa.ListArray.from_arrays(offsets, column.flatten().dictionary_decode())


def _check_postings(directory: Path, side: str, expected: _Expected, notes: Notes) -> None:
    name = bm25_directory(side)
    try:
        wrong = _miscounted(directory / name, expected)
    except UNREADABLE as error:
        notes.note("unreadable", f"cannot be read: {' '.join(str(error).split())}", file=name)
        return
    if wrong:
        message = f"{wrong:,} filter values are in more or fewer {side} than {FILTERS} says"
        notes.note("filters", message, file=name)


def _miscounted(directory: Path, expected: _Expected) -> int:
    """Return the number of terms and years whose document count is not as expected."""
    wrong = 0
    with postings_of(directory) as index:
        searcher = index.searcher()
        for term, count in expected.terms.items():
            wrong += searcher.doc_freq(post_filters.TERMS, term) != count
        for year, count in expected.years.items():
            query = tantivy.Query.range_query(
                index.schema, post_filters.YEAR, tantivy.FieldType.Integer, year, year
            )
            wrong += searcher.search(query, 1).count != count
    return wrong


# Rows per query, which bounds memory: a hit is a Python object of about 100 bytes.
CHUNK_ROWS = 50_000


def count_documents(directory: Path) -> int:
    """Return the number of documents. Raises ValueError or OSError if tantivy cannot read it."""
    with postings_of(directory) as index:
        return int(index.searcher().num_docs)


def absent_rows(directory: Path, rows: int) -> list[int]:
    """Return the rows below `rows` without a document; raises the errors of `count_documents`."""
    absent: list[int] = []
    with postings_of(directory) as index:
        searcher = index.searcher()
        for begin in range(0, rows, CHUNK_ROWS):
            wanted = np.arange(begin, min(begin + CHUNK_ROWS, rows))
            query = tantivy.Query.range_query(
                index.schema, "row", tantivy.FieldType.Integer, int(wanted[0]), int(wanted[-1])
            )
            hits = searcher.search(query, len(wanted), count=False).hits
            found = searcher.fast_field_values("row", [address for _, address in hits])
            held = np.asarray([row for row in found if row is not None], np.int64)
            absent += np.setdiff1d(wanted, held).tolist()
    return absent
