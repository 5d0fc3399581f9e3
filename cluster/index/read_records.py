"""Reads the memory-mapped citations and passages of one segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster.arrow_records import RowTaker, citation_from_row, map_table, titles_and_abstracts
from cluster.index.filters.match_authors import plain, rows_by
from cluster.index.filters.write_filters import DESIGN_COLUMNS, designs_of
from cluster.index.layout import CITATIONS, PASSAGES
from cluster.index.supersedes import read_supersedes
from cluster.notices import DOUBTS_OF, RETRACTIONS_OF
from cluster.records import Citation, Passage, SectionName, search_text

Rows = npt.NDArray[np.int64]
SECTION_NAMES: tuple[SectionName, SectionName] = ("title", "abstract")


class SegmentRecords:
    """Records of a segment. Opening reads only the PMIDs and verifies no checksum.

    `citations` and `passages` are those files of `directory` (default: map them into memory).
    """

    def __init__(
        self,
        directory: Path,
        citations: RowTaker | None = None,
        passages: RowTaker | None = None,
    ) -> None:
        self.directory = directory
        self._citations = citations or RowTaker(map_table(directory / CITATIONS))
        self._passages = passages or RowTaker(map_table(directory / PASSAGES))
        self.pmids: Rows = self._citations.column("pmid").to_numpy()

    @cached_property
    def passage_citation(self) -> Rows:
        """The citation row of each passage row; ascending."""
        return np.asarray(self._passages.column("citation_row").to_numpy(), np.int64)

    def rows_by(self, authors: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return whether one of `authors` wrote each citation; reads the authors of all rows."""
        if "authors" not in self._citations.names:
            return np.zeros(len(self.pmids), np.bool_)
        return rows_by(self._citations.column("authors"), [plain(name) for name in authors])

    @cached_property
    def designs(self) -> npt.NDArray[np.str_]:
        """The study design of each citation row, for segments whose filters lack it."""
        columns = pa.table({name: self._citations.column(name) for name in DESIGN_COLUMNS})
        return np.array([d for b in columns.to_batches() for d in designs_of(b)], np.str_)

    def pmids_of(
        self, name: Literal["doi", "pmcid"], values: Sequence[str]
    ) -> list[tuple[str, int]]:
        """Return (value, PMID) of each row whose DOI or PMCID is one of `values`.

        DOIs are given in lower case, PMCIDs in upper case. The identifiers of all rows are read.
        """
        fold = pc.ascii_lower if name == "doi" else pc.ascii_upper
        column = fold(self._citations.column(name))
        rows = pc.indices_nonzero(pc.is_in(column, pa.array(values, pa.string()))).to_numpy()
        found = column.take(pa.array(rows)).to_pylist()
        return list(zip(found, self.pmids[rows].tolist(), strict=True))

    @property
    def token_ends(self) -> npt.NDArray[np.uint64]:
        """Cumulative number of tokens up to and including each passage row."""
        return np.asarray(self._passages.column("token_end").to_numpy(), np.uint64)

    def supersedes(self) -> Rows:
        """Return the PMIDs, ascending, that this segment replaces or removes in older ones."""
        return read_supersedes(self.directory).pmids

    def rows_of(self, pmids: Rows) -> Rows:
        """Return the citation rows of those `pmids` (ascending) that exist, live or dead."""
        rows = np.searchsorted(self.pmids, pmids)
        inside = rows < len(self.pmids)
        rows, pmids = rows[inside], pmids[inside]
        return np.asarray(rows[self.pmids[rows] == pmids], np.int64)

    def table(self, rows: Rows, columns: Sequence[str] | None = None) -> pa.Table:
        """Return citation rows in CITATION_SCHEMA, with all or some `columns`, in this order."""
        return self._citations.take(rows, columns)

    @property
    def links(self) -> pa.ChunkedArray:
        """The links of each citation row."""
        return self._citations.column("links")

    def references(self, rows: Rows) -> list[tuple[int, ...] | None]:
        """Return the PMIDs that each citation row cites; None if the segment lacks them.

        The article that a notice concerns, or that a republication replaces, is left out, because
        the record does not rely on it.
        """
        if "references" not in self._citations.names:
            return [None] * len(rows)
        marks, found = RETRACTIONS_OF | DOUBTS_OF, list[tuple[int, ...] | None]()
        for record in self._citations.take(rows, ["references", "links"]).to_pylist():
            marked = {link["pmid"] for link in record["links"] if link["kind"] in marks}
            cited = record["references"]
            kept = None if cited is None else tuple(pmid for pmid in cited if pmid not in marked)
            found.append(kept)
        return found

    def passages_of(self, rows: Rows) -> Rows:
        """Return the passage rows of citation rows, grouped by citation."""
        begins = np.searchsorted(self.passage_citation, rows)
        counts = np.searchsorted(self.passage_citation, rows, side="right") - begins
        before = np.cumsum(counts) - counts
        return np.asarray(np.repeat(begins - before, counts) + np.arange(counts.sum()), np.int64)

    def span_lists(self, rows: Rows) -> pa.ListArray:
        """Return the spans of each citation row, in order, as an Arrow array."""
        begins = np.searchsorted(self.passage_citation, rows)
        counts = np.searchsorted(self.passage_citation, rows, side="right") - begins
        chosen = self._passages.take(self.passages_of(rows), ["section", "begin", "end"])
        values = chosen.to_struct_array().combine_chunks()
        return pa.ListArray.from_arrays(
            pa.array(np.append(0, np.cumsum(counts)), pa.int32()), values
        )

    def with_passages(self, rows: Rows) -> list[tuple[Citation, tuple[Passage, ...]]]:
        """Return the citations at `rows`, in this order, each with its passages in order."""
        citations = map(citation_from_row, self.table(rows).to_pylist())
        spans = self.span_lists(rows).to_pylist()
        return [(c, _passages(c, own)) for c, own in zip(citations, spans, strict=True)]

    def _titles_and_abstracts(self, rows: Rows) -> list[tuple[str, str]]:
        """Return the title and the canonical abstract of citation rows."""
        return titles_and_abstracts(self._citations.take(rows, ["title", "sections"]))

    def citation_texts(self, rows: Rows) -> list[str]:
        """Return the texts of citation rows that BM25 over citations indexes."""
        return [search_text(*texts) for texts in self._titles_and_abstracts(rows)]

    def passage_texts(self, rows: Rows) -> list[str]:
        """Return the texts of passage rows that BM25 over passages indexes."""
        spans = self._passages.take(rows).to_pylist()
        citations, places = np.unique(self.passage_citation[rows], return_inverse=True)
        texts = self._titles_and_abstracts(citations)
        return [
            texts[row][span["section"]][span["begin"] : span["end"]]
            for row, span in zip(places, spans, strict=True)
        ]


def _passages(citation: Citation, spans: Sequence[Mapping[str, Any]]) -> tuple[Passage, ...]:
    texts = (citation.title, citation.abstract)
    return tuple(
        Passage(
            citation.pmid,
            SECTION_NAMES[s["section"]],
            s["begin"],
            s["end"],
            texts[s["section"]][s["begin"] : s["end"]],
        )
        for s in spans
    )
