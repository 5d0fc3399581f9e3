"""Reads one segment: its citations, its passages, and search over both."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster.arrow_records import citation_from_row
from cluster.index.bm25 import Bm25Index, Bm25Query
from cluster.index.layout import CITATIONS, PASSAGES, SUPERSEDES, VECTORS, bm25_directory
from cluster.index.manifest import SegmentEntry, check_artefact
from cluster.index.vectors import VectorIndex, Vectors
from cluster.records import (
    Citation,
    Passage,
    Section,
    SectionName,
    abstract_text,
    search_text,
)

Rows = npt.NDArray[np.int64]
SECTION_NAMES: tuple[SectionName, SectionName] = ("title", "abstract")


def _map_table(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


class SegmentReader:
    """`dead` rows, told by `hide`, are citations that a newer segment replaced or removed."""

    def __init__(
        self, directory: Path, entry: SegmentEntry, *, ef_search: int, exact_below: int
    ) -> None:
        for name, expected in entry.artefacts.items():
            check_artefact(directory / name, expected)
        self._directory = directory
        self._over = tuple(entry.terms)
        self._citations = _map_table(directory / CITATIONS)
        self._passages = _map_table(directory / PASSAGES)
        self.pmids: Rows = self._citations.column("pmid").to_numpy()
        self._vectors = VectorIndex(directory / VECTORS, ef_search, exact_below)
        self._dead_citations: Rows = np.empty(0, np.int64)
        self._dead_passages: Rows = np.empty(0, np.int64)

    @cached_property
    def _passage_citation(self) -> Rows:
        """The citation row of each passage row; ascending."""
        return np.asarray(self._passages.column("citation_row").to_numpy(), np.int64)

    @cached_property
    def _bm25(self) -> dict[str, Bm25Index]:
        texts = {"citations": self._citation_texts, "passages": self._passage_texts}
        return {
            name: Bm25Index(self._directory / bm25_directory(name), texts[name])
            for name in self._over
        }

    def supersedes(self) -> Rows:
        """PMIDs that this segment replaces or removes in older segments."""
        path = self._directory / SUPERSEDES
        if not path.is_file():
            return np.empty(0, np.int64)
        return np.asarray(_map_table(path).column("pmid").to_numpy(), np.int64)

    def hide(self, pmids: Rows) -> None:
        """Leave these PMIDs out of every search and look-up from now on."""
        self._dead_citations = np.flatnonzero(np.isin(self.pmids, pmids)).astype(np.int64)
        dead = np.isin(self._passage_citation, self._dead_citations)
        self._dead_passages = np.flatnonzero(dead).astype(np.int64)

    def row_of(self, pmid: int) -> int | None:
        """The live row of `pmid`, or None."""
        row = int(np.searchsorted(self.pmids, pmid))
        if row == len(self.pmids) or self.pmids[row] != pmid or row in self._dead_citations:
            return None
        return row

    def citation(self, row: int) -> Citation:
        return citation_from_row(self._citations.slice(row, 1).to_pylist()[0])

    def passage_rows(self, row: int) -> range:
        """The passage rows of a citation row."""
        begin, end = np.searchsorted(self._passage_citation, [row, row + 1])
        return range(int(begin), int(end))

    def passages(self, row: int, citation: Citation) -> list[Passage]:
        """The passages of the citation at `row`, in their order."""
        rows = self.passage_rows(row)
        spans = self._passages.slice(rows.start, len(rows)).to_pylist()
        texts = (citation.title, citation.abstract)
        return [
            Passage(
                citation.pmid,
                SECTION_NAMES[s["section"]],
                s["begin"],
                s["end"],
                texts[s["section"]][s["begin"] : s["end"]],
            )
            for s in spans
        ]

    def _titles_and_abstracts(self, rows: Rows) -> list[tuple[str, str]]:
        """The title and the canonical abstract of citation rows, without their other fields."""
        chosen = self._citations.select(["title", "sections"]).take(rows).to_pydict()
        return [
            (title, abstract_text(tuple(Section(**section) for section in sections)))
            for title, sections in zip(chosen["title"], chosen["sections"], strict=True)
        ]

    def _citation_texts(self, rows: Rows) -> list[str]:
        return [search_text(*texts) for texts in self._titles_and_abstracts(rows)]

    def _passage_texts(self, rows: Rows) -> list[str]:
        spans = self._passages.take(rows).to_pylist()
        citations, places = np.unique(self._passage_citation[rows], return_inverse=True)
        texts = self._titles_and_abstracts(citations)
        return [
            texts[place][span["section"]][span["begin"] : span["end"]]
            for place, span in zip(places, spans, strict=True)
        ]

    def _best_per_citation(self, rows: Rows, scores: Vectors) -> tuple[Rows, Vectors]:
        """Passage rows, best first, as citation rows with each one's best score."""
        citations, first = np.unique(self._passage_citation[rows], return_index=True)
        order = np.argsort(first, kind="stable")
        return citations[order], scores[first[order]]

    def search_dense(self, query: Vectors, limit: int) -> tuple[Rows, Vectors]:
        """The `limit` citations with the nearest passages to `query` (d,), best first."""
        wanted = 3 * limit
        while True:
            rows, scores = self._vectors.search(query, wanted, self._dead_passages)
            citations, best = self._best_per_citation(rows, scores)
            if len(citations) >= limit or len(rows) < wanted or wanted >= self._vectors.size:
                return citations[:limit], best[:limit]
            wanted *= 2

    def search_bm25(
        self, query: Bm25Query, limit: int, over: Literal["citations", "passages"]
    ) -> tuple[Rows, Vectors]:
        """The `limit` citations best by BM25, or by their best passage's, best first."""
        if over == "citations":
            dead = frozenset(self._dead_citations.tolist())
            return self._bm25[over].search(query, limit, dead)
        dead = frozenset(self._dead_passages.tolist())
        rows, scores = self._bm25[over].search(query, 3 * limit, dead)
        citations, best = self._best_per_citation(rows, scores)
        return citations[:limit], best[:limit]

    def frequencies(self, terms: list[str], over: str) -> dict[str, int]:
        return self._bm25[over].frequencies(terms)

    def dense_scores(self, query: Vectors, rows: Rows) -> list[Vectors]:
        """For each citation row, the inner products of its passages, in their order."""
        passages = [self.passage_rows(int(row)) for row in rows]
        flat = np.fromiter((p for r in passages for p in r), np.int64)
        scores = self._vectors.scores(query, flat)
        ends = np.cumsum([len(r) for r in passages], dtype=np.int64)
        return [scores[end - len(r) : end] for r, end in zip(passages, ends, strict=True)]

    def bm25_scores(
        self, query: Bm25Query, rows: Rows, over: Literal["citations", "passages"]
    ) -> Vectors:
        """BM25 of each citation row, or of its best passage."""
        if over == "citations":
            return self._bm25[over].scores(query, rows)
        best = [
            max(self._bm25[over].scores(query, np.arange(r.start, r.stop)), default=0.0)
            for r in (self.passage_rows(int(row)) for row in rows)
        ]
        return np.asarray(best, np.float32)

    def live_pmids(self) -> Rows:
        keep = np.ones(len(self.pmids), bool)
        keep[self._dead_citations] = False
        return np.asarray(self.pmids[keep], np.int64)
