"""Evidence as the reader sees it: each passage with what it says to the question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Literal, Protocol

from cachetools import LRUCache

from cluster.answers import Evidence
from cluster.models.readings import Reading
from cluster.records import TITLE
from serve.question.contrary_forms import affirmed
from serve.question.stated_plainly import is_stated_plainly
from serve.support.compare_wording import coverage, read_wording
from serve.support.read_harm import affirms_harm, harm_asked, without_allaying
from serve.support.read_method import (
    asks_of_method,
    is_silent,
    only_found,
    only_names,
)
from serve.support.read_mood import only_stated

# Of more passages the first, which rank best, say enough; each costs the model some milliseconds.
MAX_READ = 20
# Readings of some 25 questions, a few kB each.
KEPT = 512

Side = Literal["yes", "no"]


class PassageReader(Protocol):
    """A model that reads passages against a question."""

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        """One Reading a passage, in their order (cluster.models.reader.Reader)."""
        ...


class RememberingReader:
    """Keeps the last `kept` readings: what ranked a passage need not be read again to answer."""

    def __init__(self, reader: PassageReader, kept: int = KEPT) -> None:
        self._reader = reader
        self._readings: LRUCache[tuple[str, str], Reading] = LRUCache(kept)
        self._keeping = Lock()

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        """See `PassageReader.read`; safe from several threads, which may read a passage twice."""
        keys = [(question, passage) for passage in passages]
        with self._keeping:
            known = {key: self._readings[key] for key in keys if key in self._readings}
        new = [key for key in dict.fromkeys(keys) if key not in known]
        known.update(zip(new, self._reader.read(question, [text for _, text in new]), strict=True))
        with self._keeping:
            self._readings.update(known)
        return [known[key] for key in keys]


def first_passages(evidence: Sequence[Evidence], characters: int) -> Sequence[Evidence]:
    """The first passages of `evidence`, as many as have that many characters together, or one."""
    total = 0
    for place, item in enumerate(evidence):
        total += len(item.passage.text)
        if total > characters and place:
            return evidence[:place]
    return evidence


def answering(reading: Reading) -> float:
    """How far a passage answers, 0 to 1: it is relevant, and a sentence of it says the answer.

    The geometric mean of both ranks better than either.
    """
    said = max((sentence.score for sentence in reading.sentences), default=0.0)
    return math.sqrt(reading.relevance * said)


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A piece of evidence, its place in the ranking from 0, and what it says to the question."""

    item: Evidence
    rank: int
    reading: Reading

    @property
    def text(self) -> str:
        """The passage's text, the span that the reading's offsets refer to."""
        return self.item.passage.text

    def weight(self, side: Side) -> float:
        """How far the passage says `side` to a yes/no question, 0 to 1."""
        said = self.reading.yes if side == "yes" else self.reading.no
        return self.reading.relevance * said

    def share_of(self, body: str) -> float:
        """The share, 0 to 1, of the words of `body` that the passage holds with its title."""
        return coverage(read_wording(body), read_wording(f"{self.item.title} {self.text}"))

    def sentence_at(self, at: int) -> str:
        """The sentence that holds the character `at`; "" where the reader saw none."""
        spans = self.reading.sentences
        return next((self.text[s.begin : s.end] for s in spans if s.begin <= at < s.end), "")

    def sentence_score(self, at: int) -> float:
        """How much of an answer the sentence is that holds the character `at`, 0 to 1."""
        held = (s.score for s in self.reading.sentences if s.begin <= at < s.end)
        return next(held, 0.0)


def read_texts(question: str, texts: Sequence[str], reader: PassageReader) -> list[Reading]:
    """The readings of `texts`, with yes and no in each other's place where the reader errs.

    A question that denies is read as what it denies, and turned. And where a question asks if
    harm is done, a text that speaks of harm and denies none is no "no": the reader takes what is
    bad for one. Nor is one that says in plain words all that is asked, or of safety what denies
    harm.
    """
    denied = affirmed(question)
    readings = reader.read(denied or question, texts)
    if denied:
        return list(map(turned, readings))
    harm = harm_asked(question)
    read = [
        _reread(question, text, reading, harm) if reading.no > reading.yes else reading
        for text, reading in zip(texts, readings, strict=True)
    ]
    against = [
        without_allaying(text, question) if reading.no > reading.yes else text
        for text, reading in zip(texts, read, strict=True)
    ]
    return _with_sides(question, texts, read, against, reader)


def _reread(question: str, text: str, reading: Reading, harm: frozenset[str]) -> Reading:
    """A reading that says no, as the words of the text bear it out."""
    if affirms_harm(text, harm):
        return turned(reading)
    if is_stated_plainly(text, question):
        return replace(reading, no=0.0, silent=reading.silent + reading.no)
    return reading


def turned(reading: Reading) -> Reading:
    """The reading with yes and no in each other's place."""
    return replace(reading, yes=reading.no, no=reading.yes)


def read_evidence(
    question: str, evidence: Sequence[Evidence], reader: PassageReader, *, sides: bool = False
) -> list[ReadPassage]:
    """The first MAX_READ pieces of `evidence` with their readings, in order.

    With `sides`, for a yes/no question, what a text only asks, aims at or supposes takes none, nor
    does what was done before anything was found, or a title that only names its subject.
    """
    first = evidence[:MAX_READ]
    texts = [item.passage.text for item in first]
    readings = read_texts(question, texts, reader)
    if sides:
        titles = [item.passage.section == TITLE for item in first]
        sided = [_sided(question, *row) for row in zip(texts, titles, strict=True)]
        readings = _with_sides(question, texts, readings, sided, reader)
    return [ReadPassage(*row) for row in zip(first, range(len(first)), readings, strict=True)]


def _sided(question: str, text: str, is_title: bool = False) -> str:
    """What of a text may take a side: the reader takes "We tested whether X" for a yes to X."""
    stated = only_stated(text)
    if asks_of_method(question):
        return stated
    if is_title and only_names(text):
        return ""
    return only_found(stated)


def _with_sides(
    question: str,
    texts: Sequence[str],
    readings: Sequence[Reading],
    sided: Sequence[str],
    reader: PassageReader,
) -> list[Reading]:
    """The readings, with the sides that `sided`, what of each text may take one, takes."""
    parts = list(
        dict.fromkeys(part for part, text in zip(sided, texts, strict=True) if part != text)
    )
    again = dict(zip(parts, read_texts(question, parts, reader) if parts else (), strict=True))
    return [
        reading if part == text else _with_sides_of(again[part], reading)
        for part, text, reading in zip(sided, texts, readings, strict=True)
    ]


def _with_sides_of(stated: Reading, reading: Reading) -> Reading:
    """`reading` with yes and no so that, times its relevance, they are those of `stated`."""
    share = min(1.0, stated.relevance / reading.relevance) if reading.relevance else 0.0
    yes, no = share * stated.yes, share * stated.no
    return replace(reading, yes=yes, no=no, silent=1 - yes - no)


def spoken_by(sentence: str, question: str, reader: PassageReader) -> Side | None:
    """The side that `sentence` alone takes on the yes/no `question`; None where it is silent."""
    if is_silent(sentence, question):
        return None
    [reading] = read_texts(question, [only_stated(sentence)], reader)
    if reading.silent >= max(reading.yes, reading.no):
        return None
    return "yes" if reading.yes > reading.no else "no"
