"""Writes the filterable columns of a segment, one row per citation, in the citations' order.

List values are stored folded, as codes of one dictionary per column, which grows while the
segment is written. Codes are valid only within their segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from cluster.index.filters.filters import FLAGS, LISTS, fold
from cluster.index.layout import FILTERS
from cluster.records import (
    HUMANS_UI,
    RETRACTED_LINKS,
    RETRACTED_TITLE,
    RETRACTED_TYPE,
    Citation,
    MeshHeading,
)
from cluster.study_design.design_classifier import classify_design
from cluster.study_design.designs import Design

# The bits of the column `flags`, and the terms that stand for them in the BM25 indexes.
FLAG_BITS = {name: flag.bit for name, flag in FLAGS.items()}

_CODES = pa.dictionary(pa.int32(), pa.string())
FILTER_SCHEMA = pa.schema(
    [
        # Null where the citation has no year.
        ("year", pa.int16()),
        ("flags", pa.uint8()),
        *((name, pa.list_(pa.field("item", _CODES))) for name in LISTS),
    ]
)
# The columns of CITATION_SCHEMA that FilterEncoder reads.
SOURCE_COLUMNS = (
    "title",
    "sections",
    "journal",
    "journal_abbreviation",
    "year",
    "languages",
    "publication_types",
    "mesh",
    "links",
)

# The columns of CITATION_SCHEMA from which the study design is determined.
DESIGN_COLUMNS = ("publication_types", "mesh")


@dataclass(frozen=True, slots=True)
class Posted:
    """Filter values of a citation in the BM25 indexes: its year, and terms joined by spaces."""

    year: int | None = None
    terms: str = ""


NOTHING_POSTED = Posted()


def term_of(column: str, code: int) -> str:
    """Return the term for a value of a list column, such as "mesh:17"."""
    return f"{column}:{code}"


class FilterEncoder:
    """Turns citations into rows of FILTER_SCHEMA; its dictionaries grow from batch to batch."""

    def __init__(self) -> None:
        # In an Arrow file only a non-empty dictionary can grow, so each starts with "".
        self._codes: dict[str, dict[str, int]] = {name: {"": 0} for name in LISTS}
        self._values = {name: pa.array([""], pa.string()) for name in LISTS}

    def encode(self, citations: pa.RecordBatch) -> pa.RecordBatch:
        """Return the filterable columns of `citations`, which must have SOURCE_COLUMNS."""
        columns = [self._encode_list(name, _list_of(citations, name)) for name in LISTS]
        flags = pa.array(_flags(citations), pa.uint8())
        arrays = [citations.column("year").cast(pa.int16()), flags, *columns]
        return pa.RecordBatch.from_arrays(arrays, schema=FILTER_SCHEMA)

    def _encode_list(self, name: str, lists: pa.ListArray) -> pa.ListArray:
        encoded = lists.flatten().dictionary_encode()
        codes = self._codes[name]
        known = len(codes)
        folded = [fold(value or "") for value in encoded.dictionary.to_pylist()]
        here = np.asarray([codes.setdefault(v, len(codes)) for v in folded], np.int32)
        if len(codes) > known:
            self._values[name] = pa.array(list(codes), pa.string())
        indices = here[encoded.indices.to_numpy()] if len(folded) else np.empty(0, np.int32)
        items = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), self._values[name])
        return pa.ListArray.from_arrays(pa.array(_offsets(lists), pa.int32()), items)


def designs_of(rows: pa.Table | pa.RecordBatch) -> list[Design]:
    """Return the study design of each row."""
    records = rows.select(list(DESIGN_COLUMNS)).to_pylist()
    return [
        classify_design(
            Citation(
                0,
                publication_types=tuple(row["publication_types"] or ()),
                mesh=tuple(MeshHeading(**heading) for heading in row["mesh"] or ()),
            )
        ).name
        for row in records
    ]


def _list_of(citations: pa.RecordBatch, name: str) -> pa.ListArray:
    """Return the strings of each citation that the filter `name` compares."""
    if name == "journals":
        names = [citations.column(c).to_pylist() for c in ("journal", "journal_abbreviation")]
        pairs = zip(*names, strict=True)
        return pa.array([[n for n in pair if n] for pair in pairs], pa.list_(pa.string()))
    if name == "design":
        return pa.array([[design] for design in designs_of(citations)], pa.list_(pa.string()))
    column = citations.column(name)
    if name != "mesh":
        return column
    uis = column.flatten().field("ui")
    return pa.ListArray.from_arrays(pa.array(_offsets(column), pa.int32()), uis)


def _offsets(lists: pa.ListArray) -> npt.NDArray[np.int64]:
    """Return offsets into `lists.flatten()`, which starts at the first row even in a slice."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return np.append(0, np.cumsum(counts, dtype=np.int64))


def _flags(citations: pa.RecordBatch) -> npt.NDArray[np.uint8]:
    types, links = citations.column("publication_types"), citations.column("links")
    kinds = links.flatten().field("kind")
    retracted = _rows_with(types, pc.equal(types.flatten(), RETRACTED_TYPE))
    retracted |= _rows_with(links, pc.is_in(kinds, pa.array(sorted(RETRACTED_LINKS))))
    titles = pc.match_substring_regex(citations.column("title"), RETRACTED_TITLE)
    retracted |= pc.fill_null(titles, False).to_numpy(zero_copy_only=False)
    mesh, sections = citations.column("mesh"), citations.column("sections")
    humans = _rows_with(mesh, pc.equal(mesh.flatten().field("ui"), HUMANS_UI))
    texts = pc.utf8_trim_whitespace(sections.flatten().field("text"))
    has_abstract = _rows_with(sections, pc.not_equal(texts, ""))
    held = {"retracted": retracted, "humans": humans, "has_abstract": has_abstract}
    flags = np.zeros(len(citations), np.uint8)
    for name, bit in FLAG_BITS.items():
        flags |= held[name].astype(np.uint8) * np.uint8(bit)
    return flags


def _rows_with(lists: pa.ListArray, chosen: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Return which rows of `lists` have at least one `chosen` value."""
    rows = np.zeros(len(lists), np.bool_)
    parents = pc.list_parent_indices(lists).to_numpy()
    rows[parents[pc.fill_null(chosen, False).to_numpy(zero_copy_only=False)]] = True
    return rows


def posted(rows: pa.RecordBatch) -> list[Posted]:
    """Return the filter values in the BM25 indexes for each row of FILTER_SCHEMA."""
    terms: list[list[str]] = [[] for _ in range(len(rows))]
    for name, bit in FLAG_BITS.items():
        for row in np.flatnonzero(rows.column("flags").to_numpy() & bit):
            terms[row].append(name)
    for name in LISTS:
        codes = rows.column(name).flatten().indices.to_pylist()
        parents = pc.list_parent_indices(rows.column(name)).to_pylist()
        for row, code in zip(parents, codes, strict=True):
            terms[row].append(term_of(name, code))
    years: Sequence[int | None] = rows.column("year").to_pylist()
    return [Posted(year, " ".join(t)) for year, t in zip(years, terms, strict=True)]


class FilterWriter:
    """Writes the file FILTERS of a segment, which is complete when the `with` block ends."""

    def __init__(self, directory: Path) -> None:
        # When a dictionary grows, write only the added values.
        options = ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        self._file = ipc.new_file(directory / FILTERS, FILTER_SCHEMA, options=options)
        self._encoder = FilterEncoder()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, citations: pa.RecordBatch) -> list[Posted]:
        """Write the rows of `citations` and return their filter values for the BM25 indexes."""
        rows = self._encoder.encode(citations)
        self._file.write_batch(rows)
        return posted(rows)
