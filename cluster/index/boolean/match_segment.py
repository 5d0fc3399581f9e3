"""Find the citations of a segment that match a Boolean expression.

Each term first gets a state per citation: no, maybe or yes. The filter columns decide headings,
journals, publication types, languages and years. For words, the BM25 postings exclude most
citations; the text of the others shows whether they contain the words in this form. It is read only
where the result of the whole expression depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from cachetools import LRUCache

from cluster.arrow_records import titles_and_abstracts
from cluster.errors import InputError
from cluster.index.boolean.expressions import (
    TEXT_FIELDS,
    And,
    Expression,
    Not,
    Or,
    Term,
    terms_of,
)
from cluster.index.boolean.words import Phrase
from cluster.index.filters.filters import Filters, fold, last_day_of
from cluster.index.filters.read_dates import read_dates
from cluster.index.read_records import Rows
from cluster.index.read_segment import SegmentReader
from cluster.records import NO_TITLE
from cluster.text.analysis import Analyser

States = npt.NDArray[np.uint8]
# Three-valued logic: AND is the minimum, OR the maximum, and NOT x is YES - x.
NO, MAYBE, YES = 0, 1, 2
# Maximum number of citations of a segment that are read for one expression.
MOST_READ = 300_000
# Bytes of states that are cached for each segment, one byte per citation and term.
_CACHED_BYTES = 64 << 20
_BATCH = 2_000
# Fields whose states are costly; the others are computed for each expression.
_CACHED = (*TEXT_FIELDS, "au", "majr")
_FILTERS = {
    "mh": "mesh",
    "majr": "mesh",
    "ta": "journals",
    "pt": "publication_types",
    "la": "languages",
}


class SegmentMatcher:
    """Matches expressions against one segment; caches what it read. Thread-safe."""

    def __init__(self, segment: SegmentReader) -> None:
        self._segment = segment
        self._cache: LRUCache[Term, States] = LRUCache(_CACHED_BYTES, getsizeof=_bytes_of)
        self._lock = Lock()

    def match(self, expression: Expression, analyser: Analyser) -> Rows:
        """Return the rows, ascending, of the live citations that match `expression`.

        `analyser` is that of the index. Headings must be given by their UI. Raises InputError if
        too many citations would have to be read.
        """
        segment, size = self._segment, len(self._segment.pmids)
        # Several threads may compute the same states at the same time; the results are equal.
        states = {term: self._states(term, analyser) for term in set(terms_of(expression))}
        live = np.zeros(size, np.uint8)
        live[segment.live_rows()] = YES
        found = np.minimum(_combine(expression, states, size), live)
        unsure = np.flatnonzero(found == MAYBE)
        if len(unsure) > MOST_READ:
            raise InputError(
                f"query: the words of {len(unsure):,} citations in one part of the index would "
                f"have to be compared; the limit is {MOST_READ:,}. Add rarer words, headings or "
                "dates with AND"
            )
        for begin in range(0, len(unsure), _BATCH):
            self._decide(unsure[begin : begin + _BATCH], states, analyser)
        if len(unsure):
            found = np.minimum(_combine(expression, states, size), live)
        return np.flatnonzero(found == YES)

    def months(self, rows: Rows) -> npt.NDArray[np.int32]:
        """Return the months of publication at `rows`, as 12 * year + month; 0 if unknown."""
        table = self._segment.records.table(rows, ["year", "month"])
        years, months = (pc.fill_null(table.column(n), 0).to_numpy() for n in ("year", "month"))
        return np.asarray(years.astype(np.int32) * 12 + months, np.int32)

    def _states(self, term: Term, analyser: Analyser) -> States:
        with self._lock:
            states = self._cache.get(term)
        if states is None:
            states = self._new_states(term, analyser)
            if term.field in _CACHED and states.nbytes <= _CACHED_BYTES:
                with self._lock:
                    states = self._cache.setdefault(term, states)
        return states

    def _new_states(self, term: Term, analyser: Analyser) -> States:
        segment = self._segment
        if term.field in TEXT_FIELDS:
            return self._word_states(Phrase.of(term.value, analyser), analyser)
        if term.field == "au":
            return _yes_where(segment.records.rows_by([term.value]))
        columns = segment.opened.filters
        if term.field == "dp":
            filters = Filters(**read_dates(term.value, str(term)))
            passing = columns.mask(columns.translate(filters))
            _drop_late(passing, segment, filters)
            return _yes_where(passing)
        named: dict[str, Any] = {_FILTERS[term.field]: (term.value,)}
        states = _yes_where(columns.mask(columns.translate(Filters(**named))))
        return np.minimum(states, MAYBE) if term.field == "majr" else states

    def _word_states(self, phrase: Phrase, analyser: Analyser) -> States:
        opened, size = self._segment.opened, len(self._segment.pmids)
        states = np.full(size, MAYBE, np.uint8)
        over = "citations" if "citations" in opened.bm25 else "passages"
        for terms in phrase.alternatives(analyser, opened.terms):
            rows = opened.bm25[over].rows_with(terms)
            if rows is None:
                continue
            if over == "passages":
                rows = self._segment.records.passage_citation[rows]
            held = np.zeros(size, np.uint8)
            held[rows] = MAYBE
            np.minimum(states, held, out=states)
        return states

    def _decide(self, rows: Rows, states: Mapping[Term, States], analyser: Analyser) -> None:
        """Set the states of all terms at `rows` to yes or no."""
        asked = {t: own for t, own in states.items() if (own[rows] == MAYBE).any()}
        words = {t: Phrase.of(t.value, analyser).needle for t in asked if t.field in TEXT_FIELDS}
        if words:
            texts = list(self._texts(rows, analyser))
        for term, needle in words.items():
            parts = {"ti": (0,), "ab": (1,), "tiab": (0, 1)}[term.field]
            own = asked[term]
            for row, text in zip(rows.tolist(), texts, strict=True):
                if own[row] == MAYBE:
                    own[row] = YES if any(needle in text[part] for part in parts) else NO
        if majors := [term for term in asked if term.field == "majr"]:
            headings = self._segment.records.table(rows, ["mesh"]).column("mesh").to_pylist()
            for term in majors:
                held = [_has_major(own, term.value) for own in headings]
                asked[term][rows] = np.where(held, YES, NO)

    def _texts(self, rows: Rows, analyser: Analyser) -> Iterator[tuple[str, str]]:
        """Yield the words of title and abstract, each with a space at both ends."""
        table = self._segment.records.table(rows, ["title", "sections"])
        for title, abstract in titles_and_abstracts(table):
            known = "" if title == NO_TITLE else title
            yield f" {analyser.words(known)} ", f" {analyser.words(abstract)} "


def _bytes_of(states: States) -> int:
    return states.nbytes


def _yes_where(mask: npt.NDArray[np.bool_]) -> States:
    return np.where(mask, np.uint8(YES), np.uint8(NO))


def _has_major(headings: list[dict[str, Any]] | None, ui: str) -> bool:
    return any(h["major"] and fold(h["ui"]) == fold(ui) for h in headings or ())


def _drop_late(passing: npt.NDArray[np.bool_], segment: SegmentReader, filters: Filters) -> None:
    """Remove citations that may have been published after `until`, judged by their months."""
    last = filters.last_day
    if filters.until is None or last is None:
        return
    rows = np.flatnonzero(passing)
    dates = segment.records.table(rows, ["year", "month"]).to_pydict()
    for row, year, month in zip(rows, dates["year"], dates["month"], strict=True):
        passing[row] = last_day_of(year, month) <= last


def _combine(expression: Expression, states: Mapping[Term, States], size: int) -> States:
    """Return the states of the whole expression."""
    match expression:
        case Term():
            return states[expression]
        case Not(part):
            return np.asarray(YES - _combine(part, states, size), np.uint8)
        case And(parts):
            every = (_combine(part, states, size) for part in parts)
            return reduce(np.minimum, every, np.full(size, YES, np.uint8))
        case Or(parts):
            every = (_combine(part, states, size) for part in parts)
            return reduce(np.maximum, every, np.full(size, NO, np.uint8))
