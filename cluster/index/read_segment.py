"""Searches the vectors and the BM25 indexes of one segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from cluster.index.bm25 import Bm25Index, Bm25Query
from cluster.index.copies import verified
from cluster.index.filters.filters import NO_FILTERS, Filters, last_day_of
from cluster.index.filters.find_doubts import DoubtedArticles, find_doubts
from cluster.index.filters.passing_rows import PassingRowsCache
from cluster.index.filters.read_filters import FilterColumns
from cluster.index.layout import FILTERS, TERMS, TOKENS, VECTORS, bm25_directory
from cluster.index.manifest import SegmentEntry
from cluster.index.read_records import Rows, SegmentRecords
from cluster.index.terms.term_table import frequency_of, map_terms
from cluster.index.tokens.codec import TokenCodec
from cluster.index.tokens.stored import StoredTokens
from cluster.index.vectors import VectorIndex, Vectors, live_selector
from cluster.storage.locations import Location


@dataclass(frozen=True, slots=True)
class OpenSegment:
    """The verified, memory-mapped files of a segment; immutable, so versions share them.

    No part refers back to this object, so the files are unmapped as soon as the last version
    that uses the segment is dropped.
    """

    entry: SegmentEntry
    records: SegmentRecords
    vectors: VectorIndex
    tokens: StoredTokens | None
    bm25: Mapping[str, Bm25Index]
    terms: pa.Table
    supersedes: Rows
    filters: FilterColumns
    doubts: DoubtedArticles


def open_segment(
    location: Location,
    entry: SegmentEntry,
    *,
    ef_search: int,
    exact_below: int,
    codec: TokenCodec | None = None,
) -> OpenSegment:
    """Open every file that `entry` names. Raises IndexFormatError if one does not match it.

    Without `codec` the token vectors are not read.

    All files are opened at once, because pruning may remove them while they are searched.
    Files in an object store are first copied to this machine, unless a copy exists.
    """
    directory = verified(location, entry.artefacts)
    records = SegmentRecords(directory)
    filters = FilterColumns(directory / FILTERS)
    return OpenSegment(
        entry,
        records,
        VectorIndex(directory / VECTORS, ef_search, exact_below),
        StoredTokens(directory / TOKENS, records.token_ends, codec) if codec else None,
        {name: Bm25Index(directory / bm25_directory(name)) for name in entry.terms},
        map_terms(directory / TERMS),
        records.supersedes(),
        filters,
        find_doubts(records.pmids, filters.flagged("retracted"), records.links),
    )


class SegmentReader:
    """The live part of a segment: all but the PMIDs that newer segments replaced or removed.

    Rows count from 0 over everything that the segment holds, live or dead.
    """

    def __init__(self, opened: OpenSegment, newer: Rows) -> None:
        """`newer` are the PMIDs, ascending, that newer segments replace or remove."""
        self.opened = opened
        self.records = opened.records
        self.pmids = opened.records.pmids
        self._dead_citations = self.records.rows_of(newer)
        passages = self.records.passages_of(self._dead_citations)
        self._live = live_selector(passages)
        self._passing = PassingRowsCache(opened.filters, self.records, self._dead_citations)
        self.doubts = opened.doubts.without(self._dead_citations)
        self._dead = {
            "citations": frozenset(self._dead_citations.tolist()),
            "passages": frozenset(passages.tolist()),
        }

    def row_of(self, pmid: int) -> int | None:
        """Return the live row of `pmid`, or None."""
        row = int(np.searchsorted(self.pmids, pmid))
        if row == len(self.pmids) or self.pmids[row] != pmid:
            return None
        return None if row in self._dead["citations"] else row

    def _best_per_citation(self, rows: Rows, scores: Vectors) -> tuple[Rows, Vectors]:
        """Convert passage rows, best first, to citation rows, each with its best score."""
        citations, first = np.unique(self.records.passage_citation[rows], return_index=True)
        order = np.argsort(first, kind="stable")
        return citations[order], scores[first[order]]

    def search_dense(
        self, query: Vectors, limit: int, filters: Filters = NO_FILTERS
    ) -> tuple[Rows, Vectors]:
        """Return the `limit` citations with passages nearest to `query` (d,), best first."""
        passing = self._passing.find(filters).passages.rows if filters else None
        vectors, wanted = self.opened.vectors, 3 * limit
        while True:
            if passing is None:
                rows, scores = vectors.search(query, wanted, self._live)
            else:
                rows, scores = vectors.search_among(query, wanted, passing)
            citations, best = self._best_per_citation(rows, scores)
            if len(citations) >= limit or len(rows) < wanted or wanted >= vectors.size:
                return citations[:limit], best[:limit]
            wanted *= 2

    def search_bm25(
        self,
        query: Bm25Query,
        limit: int,
        over: Literal["citations", "passages"],
        filters: Filters = NO_FILTERS,
    ) -> tuple[Rows, Vectors]:
        """Return the `limit` citations with the best BM25 of text or passage, best first."""
        dead = self._dead[over]
        passing = self._passing.find(filters) if filters else None
        if over == "citations":
            among = passing.citations if passing else None
            return self.opened.bm25[over].search(query, limit, dead, among)
        among = passing.passages if passing else None
        rows, scores = self.opened.bm25[over].search(query, 3 * limit, dead, among)
        citations, best = self._best_per_citation(rows, scores)
        return citations[:limit], best[:limit]

    def frequencies(self, terms: list[str], over: str) -> dict[str, int]:
        """Return how many units hold each term, minus those made dead in other segments.

        For one segment this may be negative; the sum over a shard's segments counts live units.
        """
        return {term: frequency_of([self.opened.terms], term, over) for term in terms}

    def vectors(self, passages: Rows) -> Vectors:
        """Return the vectors (n, d) of passage rows; storing these again gives the same codes."""
        return self.opened.vectors.stored(passages)

    def dense_scores(self, query: Vectors, rows: Rows) -> Vectors:
        """Return the best inner product of each citation's passages; 0 without passages.

        `rows` are citation rows in ascending order.
        """
        passages = self.records.passages_of(rows)
        owners = np.searchsorted(rows, self.records.passage_citation[passages])
        best = np.full(len(rows), -np.inf, np.float32)
        np.maximum.at(best, owners, self.opened.vectors.scores(query, passages))
        return np.where(np.isinf(best), np.float32(0), best)

    def bm25_scores(
        self, query: Bm25Query, rows: Rows, over: Literal["citations", "passages"]
    ) -> Vectors:
        """Return the BM25 of each citation row (ascending), or of its best passage."""
        index = self.opened.bm25[over]
        if over == "citations":
            return index.scores(query, rows)
        passages = self.records.passages_of(rows)
        owners = np.searchsorted(rows, self.records.passage_citation[passages])
        best = np.zeros(len(rows), np.float32)
        np.maximum.at(best, owners, index.scores(query, passages))
        return best

    def count_passing(self, filters: Filters) -> int:
        """Return the number of live citations that pass; for `until`, also reads their months."""
        rows = self._passing.find(filters).citations.rows
        last = filters.last_day
        if filters.until is None or last is None:
            return rows.count
        dates = self.records.table(rows.rows(), ("year", "month")).to_pydict()
        late = (
            year == last.year and last_day_of(year, month) > last
            for year, month in zip(dates["year"], dates["month"], strict=True)
        )
        return rows.count - sum(bool(one) for one in late)

    def live_rows(self) -> Rows:
        """Return the live citation rows, ascending."""
        return np.setdiff1d(np.arange(len(self.pmids)), self._dead_citations)


def identify(
    segments: Sequence[SegmentReader],
    pmids: Sequence[int],
    dois: Sequence[str],
    pmcids: Sequence[str] = (),
) -> dict[str, int]:
    """Return the PMIDs that are live in a shard's `segments`, by the identifier that was given.

    The keys are PMIDs as strings, DOIs in lower case and PMCIDs in upper case, each matched in
    full. For DOIs and PMCIDs every record is read, because no index holds them.
    """
    found = {str(pmid): pmid for pmid in pmids if any(s.row_of(pmid) is not None for s in segments)}
    for segment in segments:
        pairs = segment.records.pmids_of("doi", dois) if dois else []
        pairs += segment.records.pmids_of("pmcid", pmcids) if pmcids else []
        found |= {key: pmid for key, pmid in pairs if segment.row_of(pmid) is not None}
    return found
