"""Reads one shard: the query that it receives and the candidates that it returns.

Every candidate carries both its dense and its BM25 score, whichever branch found it,
so that fused scores depend neither on a branch's limit nor on the number of shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import exp, lgamma, log, log1p
from typing import Literal

import numpy as np
import numpy.typing as npt

from cluster.arrow_records import citation_from_row
from cluster.exposure import Doubt
from cluster.index.bm25 import Bm25Query
from cluster.index.boolean.expressions import Expression
from cluster.index.boolean.match_segment import SegmentMatcher
from cluster.index.filters.filters import NO_FILTERS, Filters
from cluster.index.layout import segment_directory
from cluster.index.manifest import ShardEntry
from cluster.index.read_records import Rows
from cluster.index.read_segment import SegmentReader, open_segment
from cluster.index.terms.collection import Statistics
from cluster.index.tokens.codec import Halves, TokenCodec
from cluster.index.tokens.stored import mean_max_sim
from cluster.index.vectors import Vectors
from cluster.notices import DOUBTED, RETRACTED
from cluster.records import Citation, Passage
from cluster.storage.locations import Location
from cluster.text.analysis import ANALYSER, Analyser

# Maximum probability that one of the best hits of the whole index is missed.
MISSED = 1e-6


@cache
def limit_of_shard(limit: int, shards: int, missed: float = MISSED) -> int:
    """Return how many hits each of `shards` must return to include the best `limit` overall.

    The probability that one of the best is missed is at most `missed`.

    A citation's shard is a hash, so the number of the best in one shard is binomial: of
    100 over 128 shards about one, and more than 9 in less than one in a million questions.
    """
    if shards == 1:
        return limit
    beyond = 1.0
    for hits in range(limit):
        # Logarithms, because the binomial coefficients of long lists are too large for a float.
        ways = lgamma(limit + 1) - lgamma(hits + 1) - lgamma(limit - hits + 1)
        beyond -= exp(ways + hits * log(1 / shards) + (limit - hits) * log1p(-1 / shards))
        if shards * beyond < missed:
            return hits
    return limit


@dataclass(frozen=True, slots=True)
class ShardQuery:
    """Query to a shard; `vector` (d,) or `bm25` is None if that branch is off.

    `filters` apply to both. With `own_statistics`, a shard uses its own term counts, not those of
    `bm25`. Citations are fetched for the `fetched` best candidates, ranked by the sum of both
    scores weighted by `weights`, and are scored again by the question's `tokens` (n, width).
    """

    vector: Vectors | None
    bm25: Bm25Query | None
    dense_limit: int
    bm25_limit: int
    bm25_over: Literal["citations", "passages"]
    own_statistics: bool = False
    tokens: Halves | None = None
    fetched: int = 0
    weights: tuple[float, float] = (0.5, 0.5)
    filters: Filters = NO_FILTERS


@dataclass(frozen=True, slots=True)
class Candidates:
    """Arrays with one row per citation; each `found_` array flags the hits of its branch."""

    pmids: npt.NDArray[np.int64]
    dense: npt.NDArray[np.float32]
    bm25: npt.NDArray[np.float32]
    found_dense: npt.NDArray[np.bool_]
    found_bm25: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A citation with its passages and each passage's dense score (0 without a vector).

    `late` is each passage's late-interaction score, and `late_read` that of title and best passage
    together, as a reranker reads them; None without stored token vectors. `vectors` (passages, d)
    are as stored; None if the query has no vector.
    """

    citation: Citation
    passages: tuple[Passage, ...]
    dense: tuple[float, ...]
    late: tuple[float, ...] | None = None
    late_read: float | None = None
    vectors: Halves | None = field(default=None, compare=False)

    def abstract_first(self) -> list[int]:
        """Return the indices of the abstract's passages; of all passages if there are none."""
        every = range(len(self.passages))
        return [i for i in every if self.passages[i].section == "abstract"] or list(every)

    def best_passage(self) -> int | None:
        """Return the index of the passage nearest to the question, preferably of the abstract."""
        return max(self.abstract_first(), key=lambda i: (self.dense[i], -i), default=None)


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a shard: all candidates, and the citations of the best ones."""

    candidates: Candidates
    fetched: tuple[Fetched, ...]


_NO_SCORES, _NO_FLAGS = np.empty(0, np.float32), np.empty(0, np.bool_)
NO_CANDIDATES = Candidates(np.empty(0, np.int64), _NO_SCORES, _NO_SCORES, _NO_FLAGS, _NO_FLAGS)


def join_candidates(parts: Sequence[Candidates]) -> Candidates:
    """Concatenate the rows of all parts, in order; without parts there are no rows."""
    names = [field.name for field in fields(Candidates)]
    every = [NO_CANDIDATES, *parts]
    return Candidates(*(np.concatenate([getattr(p, name) for p in every]) for name in names))


def _search_segment(segment: SegmentReader, query: ShardQuery) -> Candidates:
    nothing = np.empty(0, np.int64)
    by_dense = by_bm25 = nothing
    bm25_known = np.empty(0, np.float32)
    if query.vector is not None and query.dense_limit:
        by_dense, _ = segment.search_dense(query.vector, query.dense_limit, query.filters)
    if query.bm25 is not None and query.bm25_limit:
        by_bm25, bm25_known = segment.search_bm25(
            query.bm25, query.bm25_limit, query.bm25_over, query.filters
        )
    rows = np.union1d(by_dense, by_bm25)
    dense = np.zeros(len(rows), np.float32)
    if query.vector is not None:
        dense = segment.dense_scores(query.vector, rows)
    bm25 = np.zeros(len(rows), np.float32)
    if query.bm25 is not None:
        known = np.isin(rows, by_bm25)
        bm25[known] = bm25_known[np.argsort(by_bm25)]
        bm25[~known] = segment.bm25_scores(query.bm25, rows[~known], query.bm25_over)
    return Candidates(
        segment.pmids[rows], dense, bm25, np.isin(rows, by_dense), np.isin(rows, by_bm25)
    )


class ShardReader:
    """Opens the segments of one shard, oldest first, verifying every checksum.

    Segments that `before`, a reader of another version, has already opened are shared, so
    that an update opens only the new segment. Without `codec`, which all segments share,
    token vectors are not read.
    """

    def __init__(
        self,
        index: Location,
        number: int,
        entry: ShardEntry,
        *,
        ef_search: int,
        exact_below: int,
        codec: TokenCodec | None = None,
        before: ShardReader | None = None,
    ) -> None:
        self.number = number
        self.entry = entry
        shared = {s.opened.entry.id: s.opened for s in before.segments} if before else {}
        self.segments: list[SegmentReader] = []
        newer = np.empty(0, np.int64)
        for segment in reversed(entry.segments):
            opened = shared.get(segment.id)
            # A segment that was rewritten under the same name has different checksums.
            if opened is None or opened.entry != segment:
                directory = index / segment_directory(number, segment.id)
                opened = open_segment(
                    directory,
                    segment,
                    ef_search=ef_search,
                    exact_below=exact_below,
                    codec=codec,
                )
            self.segments.insert(0, SegmentReader(opened, newer))
            newer = np.union1d(newer, opened.supersedes)
        self._matchers = [SegmentMatcher(segment) for segment in self.segments]

    def match(self, expression: Expression, analyser: Analyser = ANALYSER) -> npt.NDArray[np.int64]:
        """Return the PMIDs, ascending, of the live citations that match `expression`.

        `analyser` is that of the index. Headings must be given by their UI. Raises InputError if
        too many citations would have to be read.
        """
        return np.sort(self.match_dated(expression, analyser)[0])

    def match_dated(
        self, expression: Expression, analyser: Analyser
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return the PMIDs of `match` in no order, and their months as `SegmentMatcher.months`."""
        found = [(m, m.match(expression, analyser)) for m in self._matchers]
        pmids = [s.pmids[r] for s, (_, r) in zip(self.segments, found, strict=True)]
        months = [matcher.months(rows) for matcher, rows in found]
        return (
            np.concatenate([np.empty(0, np.int64), *pmids]),
            np.concatenate([np.empty(0, np.int32), *months]),
        )

    def statistics(self, terms: list[str], over: str) -> Statistics:
        """Return this shard's statistics for BM25 `over` "citations" or "passages"."""
        return Statistics(
            self.entry.units(over), self.entry.live_terms(over), self.frequencies(terms, over)
        )

    def frequencies(self, terms: list[str], over: str) -> dict[str, int]:
        """Return the number of live units of this shard that hold each term."""
        totals = dict.fromkeys(terms, 0)
        for segment in self.segments:
            for term, count in segment.frequencies(terms, over).items():
                totals[term] += count
        return totals

    def search(self, query: ShardQuery) -> Candidates:
        """Return live candidates in no particular order; the limits apply to each segment."""
        return join_candidates([_search_segment(s, query) for s in self.segments])

    def find(self, query: ShardQuery) -> Found:
        """Search, and fetch the citations of the best candidates, in a single call."""
        if query.own_statistics and query.bm25 is not None:
            own = self.statistics(list(query.bm25.weights), query.bm25_over)
            query = replace(query, bm25=query.bm25.with_statistics(own))
        candidates = self.search(query)
        sides = zip(query.weights, (candidates.dense, candidates.bm25), strict=True)
        dense, bm25 = (w * side / max(float(side.max(initial=0)), 1e-9) for w, side in sides)
        best = np.lexsort((candidates.pmids, -(dense + bm25)))[: query.fetched]
        pmids = candidates.pmids[best].tolist()
        return Found(candidates, tuple(self.fetch(pmids, query.vector, query.tokens)))

    def _rows(self, pmids: Iterable[int]) -> Iterator[tuple[SegmentReader, dict[int, int]]]:
        """Yield each segment that has live citations among `pmids`, with their rows by PMID."""
        asked = dict.fromkeys(pmids)
        for segment in self.segments:
            rows = {pmid: row for pmid in asked if (row := segment.row_of(pmid)) is not None}
            if rows:
                yield segment, rows

    def citation(self, pmid: int) -> Citation | None:
        """Return the live citation, or None if this shard has none with that PMID."""
        return next(iter(self.citations([pmid])), None)

    def references(self, pmids: Sequence[int]) -> dict[int, tuple[int, ...] | None]:
        """Return the PMIDs that each live citation among `pmids` cites; None if unknown."""
        found: dict[int, tuple[int, ...] | None] = {}
        for segment, rows in self._rows(pmids):
            cited = segment.records.references(_array(rows))
            found.update(zip(rows, cited, strict=True))
        return found

    def doubts(self, pmids: Sequence[int]) -> dict[int, Doubt]:
        """Return the state of those `pmids` that live records of this shard mark as in doubt.

        An article may be in another shard, or in none: its notice is enough.
        """
        asked, found = np.asarray(pmids, np.int64), dict[int, bool]()
        for segment in self.segments:
            for pmid, retracted in segment.doubts.among(asked).items():
                found[pmid] = retracted or found.get(pmid, False)
        return {pmid: RETRACTED if retracted else DOUBTED for pmid, retracted in found.items()}

    def citations(self, pmids: Sequence[int]) -> list[Citation]:
        """Return the live citations among `pmids`, in their order, without passages."""
        found: dict[int, Citation] = {}
        for segment, rows in self._rows(pmids):
            records = map(citation_from_row, segment.records.table(_array(rows)).to_pylist())
            found |= {citation.pmid: citation for citation in records}
        return [found[pmid] for pmid in pmids if pmid in found]

    def fetch(
        self, pmids: Sequence[int], vector: Vectors | None, tokens: Halves | None = None
    ) -> list[Fetched]:
        """Return the live citations among `pmids`, in their order, with their passages.

        Passages are scored by the question's `vector` (d,) and by its `tokens` (n, width).
        """
        found = {
            fetched.citation.pmid: fetched
            for segment, rows in self._rows(pmids)
            for fetched in _fetched(segment, _array(rows), vector, tokens)
        }
        return [found[pmid] for pmid in pmids if pmid in found]


def _array(rows: Mapping[int, int]) -> Rows:
    return np.asarray(list(rows.values()), np.int64)


def _fetched(
    segment: SegmentReader, rows: Rows, vector: Vectors | None, tokens: Halves | None
) -> Iterator[Fetched]:
    """Yield the citations at `rows` of one segment; reads and scores them in one pass."""
    parts = segment.records.with_passages(rows)
    ends = np.cumsum([len(passages) for _, passages in parts])
    every = segment.records.passages_of(rows)
    dense, halves = np.zeros(len(every), np.float32), None
    if vector is not None:
        vectors = segment.opened.vectors.stored(every)
        dense, halves = vectors @ vector, vectors.astype(np.float16)
    stored, best = segment.opened.tokens, None
    if tokens is not None and stored is not None:
        best = stored.best_cosines(stored.codec.project(tokens), every)
    for (citation, passages), end in zip(parts, ends, strict=True):
        own = slice(end - len(passages), end)
        fetched = Fetched(
            citation=citation,
            passages=passages,
            dense=tuple(dense[own].tolist()),
            vectors=None if halves is None else halves[own],
        )
        yield fetched if best is None else _with_late(fetched, best[own])


def _with_late(fetched: Fetched, best: Vectors) -> Fetched:
    """Return `fetched` with late-interaction scores; `best` holds best cosines by passage."""
    read = [i for i, passage in enumerate(fetched.passages) if passage.section == "title"]
    nearest = fetched.best_passage()
    if nearest is None:
        return replace(fetched, late=(), late_read=0.0)
    together = best[sorted({*read, nearest})].max(axis=0, keepdims=True)
    late_read = float(mean_max_sim(together)[0])
    return replace(fetched, late=tuple(mean_max_sim(best).tolist()), late_read=late_read)
