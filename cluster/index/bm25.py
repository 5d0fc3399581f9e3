"""BM25 over one segment: tantivy finds candidates, which are re-scored with other constants.

tantivy fixes k1 = 1.2, b = 0.75 and takes document frequencies from its own segment.
Candidates are therefore found with term weights that undo the segment's IDF, and then
scored by Lucene's formula (Robertson & Zaragoza 2009, without the constant factor
k1 + 1) with k1, b, document frequencies and mean length of the whole version, so that
a score does not depend on how citations were sharded.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import tantivy

from cluster.index.filters import post_filters
from cluster.index.filters.passing_rows import FilteredRows
from cluster.index.filters.write_filters import NOTHING_POSTED, Posted
from cluster.index.terms.bags import Bags, BagWriter
from cluster.index.terms.collection import Statistics
from cluster.text.analysis import ANALYSER, Analyser

WRITER_HEAP_BYTES = 128 << 20
# The first search asks for this many times the limit, and at least for FIRST_LEAST hits, because
# re-scoring changes the order.
FIRST_FACTOR, FIRST_LEAST = 4, 50
# Cost of returning a hit, as the number of rows that tantivy scores under a filter in that time.
ROWS_PER_HIT = 14
# A term that occurs in more than this share of the units is too common to list its rows.
COMMON_SHARE = 0.5


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("row", fast=True)
    # The text is already analysed; analysing it again in tantivy would double the time.
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
    post_filters.add_fields(builder)
    return builder.build()


class Bm25Writer:
    """Writes units (citations or passages) to rows from 0; `close` makes one tantivy segment.

    `analyser` splits texts into terms; `terms` is the total number of terms of all units.
    """

    def __init__(self, directory: Path, analyser: Analyser = ANALYSER) -> None:
        directory.mkdir(parents=True)
        self._analyser = analyser
        index = tantivy.Index(_schema(), path=str(directory))
        self._writer = index.writer(heap_size=WRITER_HEAP_BYTES, num_threads=1)
        self._bags = BagWriter(directory)
        self._rows = 0
        self.terms = 0

    def add(self, text: str, posted: Posted = NOTHING_POSTED) -> list[str]:
        """Index `text` and its filter values `posted` as the next row.

        Returns the terms of `text`.
        """
        joined = self._analyser.join_terms(text)
        filters = post_filters.fields_of(posted)
        self._writer.add_document(tantivy.Document(row=self._rows, body=joined, **filters))
        terms = joined.split()
        self._bags.add(terms)
        self._rows += 1
        self.terms += len(terms)
        return terms

    def close(self) -> None:
        """Commit and merge the units; blocks until tantivy's threads have finished."""
        self._bags.close()
        self._writer.commit()
        self._writer.wait_merging_threads()

    def discard(self) -> None:
        """Discard uncommitted units, and wait for tantivy's threads to stop writing."""
        del self._writer


@dataclass(frozen=True, slots=True)
class Bm25Query:
    """Weighted terms with the statistics of the whole version.

    `weights` maps each term to its weight, and `frequencies` to the number of units that
    hold it, out of `units` units with `mean_terms` terms on average.
    """

    weights: Mapping[str, float]
    frequencies: Mapping[str, int]
    units: int
    mean_terms: float
    k1: float
    b: float

    def with_statistics(self, known: Statistics) -> Bm25Query:
        """Return the same query with the statistics of another collection."""
        mean_terms = known.terms / max(known.units, 1)
        return replace(
            self, frequencies=known.frequencies, units=known.units, mean_terms=mean_terms
        )

    def idf(self, term: str) -> float:
        """Return Lucene's IDF in the whole version: ln(1 + (N - n + 0.5) / (n + 0.5))."""
        return _lucene_idf(self.frequencies.get(term, 0), self.units)

    def score(self, terms: Sequence[str]) -> float:
        """Return Lucene's BM25 of a unit with `terms`; 0 if it holds no term of the query."""
        counts = Counter(terms)
        norm = self.k1 * (1 - self.b + self.b * len(terms) / max(self.mean_terms, 1e-9))
        return sum(
            weight * self.idf(term) * counts[term] / (counts[term] + norm)
            for term, weight in self.weights.items()
            if term in counts
        )


def _lucene_idf(frequency: int, units: int) -> float:
    return math.log(1 + (max(units - frequency, 0) + 0.5) / (frequency + 0.5))


def _link_folder(directory: Path) -> TemporaryDirectory[str]:
    # tantivy's own threads may remove the lock file at the same time.
    folder = TemporaryDirectory(prefix="citeray-bm25-", ignore_cleanup_errors=True)
    for path in (p for p in directory.iterdir() if p.suffix != ".lock"):
        (Path(folder.name) / path.name).symlink_to(path.resolve())
    return folder


@contextmanager
def postings_of(directory: Path) -> Iterator[tantivy.Index]:
    """Open the tantivy index at `directory` without changing the directory.

    tantivy writes a lock file where it opens an index, so the index is opened through symbolic
    links; the directory may be read-only. Raises ValueError or OSError if tantivy cannot read it.
    """
    with _link_folder(directory) as links:
        index = tantivy.Index.open(links)
        index.reload()
        yield index


class Bm25Index:
    """Searches a BM25 index. Raises IndexFormatError if the units' terms cannot be read."""

    def __init__(self, directory: Path) -> None:
        # The links must exist as long as the index that was opened through them.
        self._links = None if os.access(directory, os.W_OK) else _link_folder(directory)
        index = tantivy.Index.open(self._links.name if self._links else str(directory))
        index.reload()
        self._schema = index.schema
        self._searcher = index.searcher()
        self._bags = Bags(directory)

    def _tantivy_query(self, query: Bm25Query) -> tantivy.Query | None:
        clauses = []
        for term, weight in query.weights.items():
            here = self._searcher.doc_freq("body", term)
            if here == 0 or weight <= 0:
                continue
            undo = query.idf(term) / _lucene_idf(here, self._searcher.num_docs)
            clause = tantivy.Query.term_query(self._schema, "body", term, index_option="freq")
            boosted = tantivy.Query.boost_query(clause, weight * undo)
            clauses.append((tantivy.Occur.Should, boosted))
        return tantivy.Query.boolean_query(clauses) if clauses else None

    def search(
        self,
        query: Bm25Query,
        limit: int,
        dead: frozenset[int],
        among: FilteredRows | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the best rows by Lucene's BM25 and their scores, without the rows in `dead`.

        The best come first; of equal scores, the lower row comes first. With `among`, only rows
        that pass its filters are returned; filters do not change the scores.
        """
        compiled = self._tantivy_query(query)
        found, scores = np.empty(0, np.int64), np.empty(0, np.float32)
        if compiled is None or limit == 0 or (among is not None and among.rows.count == 0):
            return found, scores
        if among is not None and among.filters.by_rows:
            return self._score_all(query, limit, dead, among)
        scored: set[int] = set()
        first = wanted = max(FIRST_FACTOR * limit, FIRST_LEAST)
        drop = among is not None
        # tantivy's order differs slightly from Lucene's, and dead rows use up hits: double the
        # number of requested hits until there are enough live ones and further hits no longer
        # change the result.
        while True:
            drop = drop and among is not None and self._dropping_pays(wanted, among)
            rows, exhausted = self._hits(compiled, wanted, among, drop=drop)
            # Compare rows, not positions: two searches may order equal scores differently.
            fresh = [r for r in rows if r not in dead and r not in scored]
            scored.update(fresh)
            new = np.asarray(fresh, np.int64)
            found = np.concatenate([found, new])
            scores = np.concatenate([scores, self.scores(query, new)])
            order = np.lexsort((found, -scores))[:limit]
            found, scores = found[order], scores[order]
            settled = wanted > first and len(found) == limit and not np.isin(new, found).any()
            if settled or exhausted:
                return found, scores
            if drop and len(rows) < wanted // 2:
                # Rows that match the query rarely pass the filter: let tantivy apply it.
                drop = False
            else:
                wanted *= 2

    def _score_all(
        self, query: Bm25Query, limit: int, dead: frozenset[int], among: FilteredRows
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Search by scoring every row that passes, for filters that tantivy cannot apply."""
        rows = among.rows.rows()
        rows = rows[~np.isin(rows, np.fromiter(dead, np.int64, len(dead)))]
        scores = self.scores(query, rows)
        rows, scores = rows[scores > 0], scores[scores > 0]
        order = np.lexsort((rows, -scores))[:limit]
        return rows[order], scores[order]

    def _dropping_pays(self, wanted: int, among: FilteredRows) -> bool:
        return among.rows.count**2 > ROWS_PER_HIT * wanted * int(self._searcher.num_docs)

    def _hits(
        self, compiled: tantivy.Query, wanted: int, among: FilteredRows | None, *, drop: bool
    ) -> tuple[list[int], bool]:
        """Return about `wanted` rows in tantivy's order, and whether there are no more.

        Rows that do not pass `among` are excluded by tantivy or, with `drop`, here: tantivy
        skips most low-scoring documents, but only in queries without filters.
        """
        if among is not None and not drop:
            compiled = post_filters.filtered(compiled, among.filters, self._schema)
        if among is not None and drop:
            wanted = wanted * int(self._searcher.num_docs) // among.rows.count
        hits = self._searcher.search(compiled, wanted, count=False).hits
        values = self._searcher.fast_field_values("row", [address for _, address in hits])
        rows = [row for row in values if row is not None]
        if among is not None and drop:
            rows = [row for row, held in zip(rows, among.rows.holds(rows), strict=True) if held]
        return rows, len(hits) < wanted

    def rows_with(self, terms: Sequence[str]) -> npt.NDArray[np.int64] | None:
        """Return the rows that have any of `terms`, in no order.

        None if one of the terms is so common that listing its rows would not narrow the search.
        """
        common = COMMON_SHARE * self._searcher.num_docs
        if any(self._searcher.doc_freq("body", term) > common for term in terms):
            return None
        wanted = tantivy.Query.term_set_query(self._schema, "body", list(terms))
        hits = self._searcher.search(wanted, max(int(self._searcher.num_docs), 1), count=False).hits
        rows = self._searcher.fast_field_values("row", [address for _, address in hits])
        return np.fromiter((row for row in rows if row is not None), np.int64)

    def scores(self, query: Bm25Query, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return Lucene's BM25 of each of `rows`; 0 for a row without a term of the query."""
        if not len(rows) or not query.weights:
            return np.zeros(len(rows), np.float32)
        counts, lengths = self._bags.count(rows, list(query.weights))
        norms = query.k1 * (1 - query.b + query.b * lengths / max(query.mean_terms, 1e-9))
        each = np.array([weight * query.idf(term) for term, weight in query.weights.items()])
        shares = np.zeros(counts.shape)
        np.divide(counts, counts + norms[:, None], out=shares, where=counts > 0)
        return np.asarray((each * shares).sum(axis=1), np.float32)
