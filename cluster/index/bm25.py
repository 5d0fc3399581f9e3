"""BM25 over one segment: tantivy finds candidates, the wanted constants re-score them.

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
from cluster.text.analysis import analyse_joined

WRITER_HEAP_BYTES = 128 << 20
# How many times as many as asked for are found first, since re-scoring lifts some past others.
FIRST_FACTOR, FIRST_LEAST = 4, 50
# A hit that is handed over takes as long as this many rows that tantivy scores under a filter
# (benchmarks/bench_filters.py).
ROWS_PER_HIT = 14


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("row", fast=True)
    # Terms come analysed: analysing here too, to count them, would take twice as long.
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
    post_filters.add_fields(builder)
    return builder.build()


class Bm25Writer:
    """Adds units under consecutive rows from 0; `close` makes them one tantivy segment.

    `terms` counts those of all units.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        index = tantivy.Index(_schema(), path=str(directory))
        self._writer = index.writer(heap_size=WRITER_HEAP_BYTES, num_threads=1)
        self._bags = BagWriter(directory)
        self._rows = 0
        self.terms = 0

    def add(self, text: str, posted: Posted = NOTHING_POSTED) -> list[str]:
        """Index `text` and what is `posted` as the next row, and give the terms of `text`.

        They are as `cluster.text.analysis` makes them.
        """
        joined = analyse_joined(text)
        filters = post_filters.fields_of(posted)
        self._writer.add_document(tantivy.Document(row=self._rows, body=joined, **filters))
        terms = joined.split()
        self._bags.add(terms)
        self._rows += 1
        self.terms += len(terms)
        return terms

    def close(self) -> None:
        """Commit and merge what was added; blocks until tantivy's threads are done."""
        self._bags.close()
        self._writer.commit()
        self._writer.wait_merging_threads()

    def abandon(self) -> None:
        """Give up what is not written yet, and wait for tantivy's threads, which would write on."""
        del self._writer


@dataclass(frozen=True, slots=True)
class Bm25Query:
    """Weighted terms with the statistics of the whole version.

    `weights` maps a term to how much it counts; `frequencies` to the number of units
    that hold it, of `units` with `mean_terms` terms on average.
    """

    weights: Mapping[str, float]
    frequencies: Mapping[str, int]
    units: int
    mean_terms: float
    k1: float
    b: float

    def with_statistics(self, known: Statistics) -> Bm25Query:
        """The same terms and constants with the statistics of another collection."""
        mean_terms = known.terms / max(known.units, 1)
        return replace(
            self, frequencies=known.frequencies, units=known.units, mean_terms=mean_terms
        )

    def idf(self, term: str) -> float:
        """Lucene's IDF of `term` over the whole version: ln(1 + (N - n + 0.5) / (n + 0.5))."""
        return _lucene_idf(self.frequencies.get(term, 0), self.units)

    def score(self, terms: Sequence[str]) -> float:
        """Lucene's BM25 of a unit made of `terms`; 0 when it holds none of the query's."""
        counts = Counter(terms)
        norm = self.k1 * (1 - self.b + self.b * len(terms) / max(self.mean_terms, 1e-9))
        return sum(
            weight * self.idf(term) * counts[term] / (counts[term] + norm)
            for term, weight in self.weights.items()
            if term in counts
        )


def _lucene_idf(frequency: int, units: int) -> float:
    return math.log(1 + (max(units - frequency, 0) + 0.5) / (frequency + 0.5))


def _links_to(directory: Path) -> TemporaryDirectory[str]:
    # tantivy's own threads may be taking the lock away just then.
    folder = TemporaryDirectory(prefix="citeray-bm25-", ignore_cleanup_errors=True)
    for path in (p for p in directory.iterdir() if p.suffix != ".lock"):
        (Path(folder.name) / path.name).symlink_to(path.resolve())
    return folder


@contextmanager
def postings_of(directory: Path) -> Iterator[tantivy.Index]:
    """The tantivy index at `directory`, which stays as it is: tantivy locks what it opens.

    It is opened through links, so that the directory may be read-only. Raises ValueError or
    OSError where tantivy cannot read it.
    """
    with _links_to(directory) as links:
        index = tantivy.Index.open(links)
        index.reload()
        yield index


class Bm25Index:
    """The reader's side; raises IndexFormatError where the units' terms cannot be read."""

    def __init__(self, directory: Path) -> None:
        # Held as long as what is opened by them.
        self._links = None if os.access(directory, os.W_OK) else _links_to(directory)
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
        """The best rows by Lucene's BM25, best first (ties: the lower row), none of `dead`.

        With `among`, only rows that pass its filters; their scores are the same as without.
        """
        compiled = self._tantivy_query(query)
        found, scores = np.empty(0, np.int64), np.empty(0, np.float32)
        if compiled is None or limit == 0 or (among is not None and among.rows.count == 0):
            return found, scores
        if among is not None and among.filters.by_rows:
            return self._best_of(query, limit, dead, among)
        scored: set[int] = set()
        first = wanted = max(FIRST_FACTOR * limit, FIRST_LEAST)
        drop = among is not None
        # tantivy's own order differs a little from Lucene's, and dead rows take up places:
        # find twice as many until there are enough and those that came last change nothing.
        while True:
            drop = drop and among is not None and self._dropping_pays(wanted, among)
            rows, exhausted = self._hits(compiled, wanted, among, drop=drop)
            # By row, not by place: among equal scores two searches may differ in order.
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
                # What matches the query passes less often than other rows.
                drop = False
            else:
                wanted *= 2

    def _best_of(
        self, query: Bm25Query, limit: int, dead: frozenset[int], among: FilteredRows
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """As `search`, by scoring every row that passes: tantivy does not know which do."""
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
        """About `wanted` rows in tantivy's order, and whether there are no more.

        Those that do not pass `among` are left out by tantivy, or are dropped here: tantivy
        skips most documents that score low, except where it has filters to go by.
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

    def scores(self, query: Bm25Query, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Lucene's BM25 of each of `rows`; as `Bm25Query.score` of their texts' terms."""
        if not len(rows) or not query.weights:
            return np.zeros(len(rows), np.float32)
        counts, lengths = self._bags.count(rows, list(query.weights))
        norms = query.k1 * (1 - query.b + query.b * lengths / max(query.mean_terms, 1e-9))
        each = np.array([weight * query.idf(term) for term, weight in query.weights.items()])
        shares = np.zeros(counts.shape)
        np.divide(counts, counts + norms[:, None], out=shares, where=counts > 0)
        return np.asarray((each * shares).sum(axis=1), np.float32)
