"""Read the citations of the evidence with the reader model: title and passages as one text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Literal, Protocol

from cachetools import LRUCache

from cluster.answers import Evidence
from cluster.models.readings import Reading, ScoredSpan
from cluster.records import NO_TITLE, TITLE
from cluster.text.sentences import sentence_spans

# Maximum number of citations to read for one question.
MAX_READ = 20
# Number of cached readings, enough for 10 to 25 questions; each takes a few kB.
CACHED = 512

Side = Literal["yes", "no"]


def other_side(side: Side) -> Side:
    """Return "no" for "yes" and "yes" for "no"."""
    return "no" if side == "yes" else "yes"


class TextReader(Protocol):
    """Model that judges what texts say about a question."""

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """Return one Reading for each text, in their order (cluster.models.reader.Reader)."""
        ...


class CachedReader:
    """Caches the last `size` readings, so that a reranked text is not read again to answer."""

    def __init__(self, reader: TextReader, size: int = CACHED) -> None:
        self._reader = reader
        self._readings: LRUCache[tuple[str, str], Reading] = LRUCache(size)
        self._lock = Lock()

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """Return one Reading for each text, in order. Thread-safe; threads may repeat a text."""
        keys = [(question, text) for text in texts]
        with self._lock:
            known = {key: self._readings[key] for key in keys if key in self._readings}
        new = [key for key in dict.fromkeys(keys) if key not in known]
        if new:
            read = self._reader.read(question, [text for _, text in new])
            known.update(zip(new, read, strict=True))
            with self._lock:
                self._readings.update(known)
        return [known[key] for key in keys]


def answering(reading: Reading) -> float:
    """Return how well a text answers, 0 to 1.

    This is the geometric mean of its relevance and its best sentence's score, which ranks better
    than either alone.
    """
    best = max((sentence.score for sentence in reading.sentences), default=0.0)
    return math.sqrt(reading.relevance * best)


@dataclass(frozen=True, slots=True)
class ReadCitation:
    """A citation with the text that was read and the reader's result for it.

    `rank` is its position among the citations, from 0. `items` are its passages, and `begins` is
    the offset of each passage in `text`, or -1 if the passage is not part of it. `no_weight` is the
    factor by which its weight for "no" is multiplied when the evidence is weighed.
    """

    pmid: int
    rank: int
    items: tuple[Evidence, ...]
    begins: tuple[int, ...]
    text: str
    reading: Reading
    no_weight: float = 1.0

    def weight(self, side: Side) -> float:
        """Return how strongly the citation supports `side` of a yes/no question, 0 to 1."""
        said = self.reading.yes if side == "yes" else self.reading.no
        return self.reading.relevance * said

    def item_at(self, at: int) -> Evidence:
        """Return the passage that contains the offset `at`, or the first passage."""
        for item, begin in zip(self.items, self.begins, strict=True):
            if 0 <= begin <= at < begin + len(item.passage.text):
                return item
        return self.items[0]

    def sentence(self, span: ScoredSpan) -> str:
        """Return the text of one of the reading's sentences."""
        return self.text[span.begin : span.end]

    def clearest(self, side: Side) -> ScoredSpan | None:
        """Return the sentence that supports `side` most; None if there are no sentences."""
        sign = 1 if side == "yes" else -1
        return max(self.reading.sentences, key=lambda s: sign * s.lean, default=None)


def read_evidence(
    question: str, evidence: Sequence[Evidence], reader: TextReader, no_weight: float = 1.0
) -> list[ReadCitation]:
    """Read the citations of `evidence`, at most MAX_READ, in the order of their first passages.

    `no_weight` is the calibration's (serve.answer.calibration.Calibration).
    """
    by_pmid: dict[int, list[Evidence]] = {}
    for item in evidence:
        by_pmid.setdefault(item.passage.pmid, []).append(item)
    found = [(pmid, items, *join_text(items)) for pmid, items in by_pmid.items()][:MAX_READ]
    readings = reader.read(question, [text for _, _, text, _ in found])
    return [
        ReadCitation(pmid, rank, tuple(items), begins, text, reading, no_weight)
        for rank, ((pmid, items, text, begins), reading) in enumerate(
            zip(found, readings, strict=True)
        )
    ]


def join_text(items: Sequence[Evidence]) -> tuple[str, tuple[int, ...]]:
    """Return the title and the passages of one citation as one text, and where each begins.

    Overlapping passages of an abstract are joined at their offsets without repetition. A title
    without a full stop gets one, so that it is not joined to the abstract's first sentence.
    """
    title = "" if items[0].title == NO_TITLE else items[0].title
    if title and any(item.passage.section != TITLE for item in items):
        title = _with_stop(title)
    text, last, end = title, None, 0
    begins = dict.fromkeys(range(len(items)), -1)
    for position in sorted(range(len(items)), key=lambda position: items[position].passage.begin):
        passage = items[position].passage
        if passage.section == TITLE:
            begins[position] = text.find(passage.text)
            continue
        shared = end - passage.begin if last == passage.section else 0
        at, stop = len(text) - shared, passage.begin + len(passage.text)
        if shared > 0 <= at and text[at : at + len(passage.text)] == passage.text[:shared]:
            end = max(end, stop)
        else:
            text += " " if text else ""
            at, shared, end = len(text), 0, stop
        begins[position] = at
        text += passage.text[shared:]
        last = passage.section
    if not text:
        text = " ".join(item.passage.text for item in items)
    return text, tuple(begins[position] for position in range(len(items)))


def _with_stop(title: str) -> str:
    ends = sentence_spans(f"{title} X.")[-1][0] > len(title)
    return title if ends else f"{title}."
