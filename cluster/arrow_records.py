"""Convert citations to and from Arrow tables, with one schema for staging and index."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster.records import (
    Author,
    Chemical,
    Citation,
    Link,
    MeshHeading,
    OtherAbstract,
    Section,
    abstract_text,
)

TEXT = pa.string()


def _records(*fields: tuple[str, pa.DataType]) -> pa.DataType:
    return pa.list_(pa.struct(fields))


SECTIONS = _records(("label", TEXT), ("text", TEXT))
CITATION_SCHEMA = pa.schema(
    [
        pa.field("pmid", pa.int64(), nullable=False),
        ("version", pa.int32()),
        ("title", TEXT),
        ("sections", SECTIONS),
        ("other_abstracts", _records(("language", TEXT), ("kind", TEXT), ("sections", SECTIONS))),
        ("authors", _records(*((n, TEXT) for n in ("last", "fore", "initials", "collective")))),
        *((name, TEXT) for name in ("journal", "journal_abbreviation", "volume", "issue", "pages")),
        ("year", pa.int16()),
        ("month", pa.int8()),
        ("languages", pa.list_(TEXT)),
        ("publication_types", pa.list_(TEXT)),
        ("mesh", _records(("ui", TEXT), ("name", TEXT), ("major", pa.bool_()))),
        ("chemicals", _records(("ui", TEXT), ("name", TEXT))),
        ("keywords", pa.list_(TEXT)),
        ("doi", TEXT),
        ("pmcid", TEXT),
        ("links", _records(("kind", TEXT), ("pmid", pa.int64()), ("source", TEXT))),
        # Null for records that an older version of CiteRay stored, whose references are unknown.
        ("references", pa.list_(pa.int32())),
        ("source", TEXT),
        ("position", pa.int64()),
    ]
)


def reference_sum(references: Sequence[int]) -> int:
    """Return a checksum of a list of references, from 0 to 2**15 - 1."""
    return zlib.crc32(np.asarray(references, np.int32).tobytes()) >> 17


def citations_to_table(citations: Iterable[Citation]) -> pa.Table:
    """Return a table with CITATION_SCHEMA and one row for each citation, in order."""
    return pa.Table.from_pylist([asdict(c) for c in citations], schema=CITATION_SCHEMA)


def _sections(rows: Iterable[Mapping[str, str]]) -> tuple[Section, ...]:
    return tuple(Section(**row) for row in rows)


_PARTS = {
    "sections": Section,
    "authors": Author,
    "mesh": MeshHeading,
    "chemicals": Chemical,
    "links": Link,
}


def citation_from_row(row: Mapping[str, Any]) -> Citation:
    """Return the citation of one row, as returned by `pa.Table.to_pylist`.

    Fields whose columns were not read have their defaults, but references are then unknown (None).
    Indexes that older versions of CiteRay built have no columns of authors and references.
    """
    values = dict(row)
    for name, part in _PARTS.items():
        values[name] = tuple(part(**fields) for fields in values.get(name, ()))
    values["other_abstracts"] = tuple(
        OtherAbstract(o["language"], o["kind"], _sections(o["sections"]))
        for o in values.get("other_abstracts", ())
    )
    for name in ("languages", "publication_types", "keywords"):
        values[name] = tuple(values.get(name, ()))
    references = values.get("references")
    values["references"] = None if references is None else tuple(references)
    return Citation(**values)


def with_all_columns(rows: pa.Table) -> pa.Table:
    """Return rows of an index in CITATION_SCHEMA; columns that it lacks have only nulls."""
    joined = pa.concat_tables([rows, CITATION_SCHEMA.empty_table()], promote_options="default")
    return joined.select(CITATION_SCHEMA.names).cast(CITATION_SCHEMA)


def titles_and_abstracts(rows: pa.Table | pa.RecordBatch) -> list[tuple[str, str]]:
    """Return the title and the canonical abstract of each row; reads no other columns."""
    titles = rows.column("title").to_pylist()
    abstracts = (abstract_text(_sections(s)) for s in rows.column("sections").to_pylist())
    return list(zip(titles, abstracts, strict=True))


def map_table(path: Path) -> pa.Table:
    """Return the table in the Arrow file at `path`, memory-mapped."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


Fetch = Callable[[Iterable[tuple[pa.Array, npt.NDArray[np.int64]]]], None]
"""Callback that gets arrays and their rows before the values of these rows are used."""


class RowTaker:
    """Takes rows of a table batch by batch, so that only these rows are copied.

    `pa.Table.take` would first join, and so copy, all chunks of a nested column. `fetch` is called
    for a table whose values are still to be read (`cluster/storage/arrow_ranges.py`).
    """

    def __init__(self, table: pa.Table, fetch: Fetch | None = None) -> None:
        self._table = table
        self._fetch = fetch
        self._batches = table.to_batches()
        self._ends = np.cumsum([batch.num_rows for batch in self._batches], dtype=np.int64)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._table.schema.names)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a whole column."""
        column = self._table.column(name)
        if self._fetch is not None:
            self._fetch([(chunk, np.arange(len(chunk))) for chunk in column.chunks])
        return column

    def take(self, rows: npt.NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.Table:
        """Return `rows` in the given order, with all columns or only `columns`."""
        names = self.names if columns is None else list(columns)
        owners = np.searchsorted(self._ends, rows, side="right")
        order = np.argsort(owners, kind="stable")
        chosen = []
        for owner in np.unique(owners):
            batch = self._batches[owner].select(names)
            chosen.append((batch, rows[owners == owner] - self._ends[owner] + batch.num_rows))
        if self._fetch is not None:
            self._fetch([(array, own) for batch, own in chosen for array in batch.columns])
        parts = [batch.take(pa.array(own)) for batch, own in chosen]
        schema = pa.schema([self._table.schema.field(name) for name in names])
        found = pa.Table.from_batches(parts, schema).combine_chunks()
        return found.take(pa.array(np.argsort(order, kind="stable")))
