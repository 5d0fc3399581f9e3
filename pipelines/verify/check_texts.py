"""Check that a segment's spans lie inside their texts, and check its term counts and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from cluster.errors import IndexFormatError
from cluster.index.layout import CITATIONS, PASSAGES, TERMS, TOKENS, bm25_directory
from cluster.index.manifest import Manifest, SegmentEntry, TokensEntry
from cluster.index.terms.bags import BAGS, Bags, numbered
from cluster.index.terms.term_table import TermCounter, map_terms, merge_terms, negated
from cluster.index.versions import analyser_of
from cluster.records import Section, abstract_text, search_text
from cluster.text.analysis import ANALYSER, Analyser
from pipelines.verify.note_findings import Ints, Notes
from pipelines.verify.read_columns import UNREADABLE, read_batches, read_integers

Span = dict[str, int]


class _Texts:
    """Counts the terms of a segment's citations and passages, and collects faulty spans."""

    def __init__(self, over: tuple[str, ...], bags: Mapping[str, Bags], analyser: Analyser) -> None:
        self._analyser = analyser
        self.terms = dict.fromkeys(over, 0)
        self.counter = TermCounter()
        self.bags = bags
        self.wrong = dict.fromkeys(over, 0)
        self._rows = dict.fromkeys(over, 0)
        self.outside: list[int] = []
        self.bare: list[int] = []

    def add(self, pmid: int, title: str, abstract: str, spans: list[Span]) -> None:
        searched, texts = search_text(title, abstract), (title, abstract)
        if not spans and searched.strip():
            self.bare.append(pmid)
        if "citations" in self.terms:
            self._count("citations", searched)
        for span in spans:
            section, begin, end = span["section"], span["begin"], span["end"]
            if section > 1 or not begin < end <= len(texts[section]):
                self.outside.append(pmid)
            elif "passages" in self.terms:
                self._count("passages", texts[section][begin:end])

    def _count(self, over: str, text: str) -> None:
        terms = self._analyser.terms(text)
        self.terms[over] += len(terms)
        self.counter.add(over, terms)
        row = self._rows[over]
        self._rows[over] += 1
        if over in self.bags:
            held, _ = self.bags[over].of(np.array([row]))
            self.wrong[over] += held.tolist() != numbered(terms)


def _citations(directory: Path, counts: Ints) -> Iterator[tuple[int, str, str, list[Span]]]:
    """Yield (PMID, title, abstract, spans) of each row; `counts` are the spans per row."""
    with pa.memory_map(str(directory / PASSAGES)) as file:
        passages = ipc.open_file(file).read_all().select(["section", "begin", "end"])
        row = begin = 0
        for batch in read_batches(directory / CITATIONS, ("pmid", "title", "sections")):
            mine = counts[row : row + batch.num_rows].tolist()
            spans = iter(passages.slice(begin, sum(mine)).to_pylist())
            row, begin = row + len(mine), begin + sum(mine)
            for citation, count in zip(batch.to_pylist(), mine, strict=True):
                sections = tuple(Section(**section) for section in citation["sections"])
                own = [next(spans) for _ in range(count)]
                yield citation["pmid"], citation["title"], abstract_text(sections), own


def _open_bags(directory: Path, over: Sequence[str], counts: Ints) -> dict[str, Bags]:
    """Open the stored terms of texts; those with a wrong number of rows are reported elsewhere."""
    units = {"citations": len(counts), "passages": int(counts.sum())}
    found = {}
    for name in over:
        with suppress(IndexFormatError):
            found[name] = Bags(directory / bm25_directory(name))
    return {name: bags for name, bags in found.items() if bags.units == units[name]}


def check_texts(
    directory: Path, manifest: Manifest, entry: SegmentEntry, counts: Ints, notes: Notes
) -> bool:
    """Note spans outside their texts, texts without a passage, and wrong counts of terms.

    `counts` are the numbers of passages of the citation rows. Memory holds one record batch at a
    time. Return whether the texts could be read.
    """
    known, analyser = True, ANALYSER
    try:
        analyser = analyser_of(manifest)
    except IndexFormatError:
        known = False
    over = manifest.bm25_over if known else ()
    texts = _Texts(over, _open_bags(directory, over, np.asarray(counts)), analyser)
    try:
        for citation in _citations(directory, np.asarray(counts)):
            texts.add(*citation)
    except (*UNREADABLE, TypeError) as error:
        notes.note("unreadable", f"texts cannot be read: {error}", file=CITATIONS)
        return False
    if texts.outside:
        message = f"{len(texts.outside):,} passages lie outside their text"
        notes.note("span", message, texts.outside, file=PASSAGES)
    if texts.bare:
        message = f"{len(texts.bare):,} citations have a text but no passage"
        notes.note("span", message, texts.bare, file=PASSAGES)
    for side, wrong in texts.wrong.items():
        if wrong:
            message = f"{wrong:,} {side} have not the terms that their texts have"
            notes.note("bm25", message, file=f"{bm25_directory(side)}/{BAGS}")
    for side, found in texts.terms.items():
        expected = entry.terms.get(side, 0)
        if found != expected:
            notes.note("terms", f"{found:,} terms of {side} instead of the manifest's {expected:,}")
    # Counts of a segment that replaces citations include subtractions, which need older segments.
    whole = set(manifest.bm25_over) == set(entry.terms) and not entry.dead.citations
    if known and whole:
        _check_counts(directory, texts.counter, notes)
    return True


def _check_counts(directory: Path, counter: TermCounter, notes: Notes) -> None:
    try:
        stored = map_terms(directory / TERMS)
    except IndexFormatError as error:
        notes.note("unreadable", str(error).partition("; ")[0], file=TERMS)
        return
    wrong = len(merge_terms([counter.table(), negated(stored)]))
    if wrong:
        message = f"{wrong:,} terms are in more or fewer units than counted"
        notes.note("terms", message, file=TERMS)


def check_tokens(
    directory: Path, tokens: TokensEntry | None, pmids: Ints, passages: Ints, notes: Notes
) -> None:
    """Note the faults of a segment's token codes.

    `pmids` and `passages` are the PMIDs and numbers of passages of its citations. Raises one of
    UNREADABLE if a file is damaged.
    """
    ends = read_integers(directory / PASSAGES, "token_end")
    counts = np.diff(ends, prepend=0)
    if (counts < 0).any():
        notes.note("order", "token_end decreases", file=PASSAGES)
        return
    a_token = tokens.components * tokens.bits // 8 if tokens else 0
    size, expected = (directory / TOKENS).stat().st_size, int(counts.sum()) * a_token
    if size != expected or (not tokens and counts.any()):
        message = f"{size:,} bytes where {counts.sum():,} tokens take {expected:,}"
        notes.note("tokens", message, file=TOKENS)
    elif tokens and not counts.all():
        owners = np.searchsorted(np.cumsum(passages), np.flatnonzero(counts == 0), side="right")
        message = f"{np.count_nonzero(counts == 0):,} passages without a token"
        notes.note("tokens", message, pmids[owners], file=TOKENS)
