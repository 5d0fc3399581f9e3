"""Evidence as the reader sees it: each passage with what it says to the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from cluster.readings import Reading
from cluster.records import Evidence

# Of more passages the first, which rank best, say enough; each costs the model some milliseconds.
MAX_READ = 12

Side = Literal["yes", "no"]


class PassageReader(Protocol):
    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        """One Reading a passage, in their order (cluster.reader.Reader)."""
        ...


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A piece of evidence, its place in the ranking from 0, and what it says to the question."""

    item: Evidence
    rank: int
    reading: Reading

    @property
    def text(self) -> str:
        return self.item.passage.text

    def weight(self, side: Side) -> float:
        """How far the passage says `side` to a yes/no question, 0 to 1."""
        said = self.reading.yes if side == "yes" else self.reading.no
        return self.reading.relevance * said

    def sentence_score(self, at: int) -> float:
        """How much of an answer the sentence is that holds the character `at`, 0 to 1."""
        held = (s.score for s in self.reading.sentences if s.begin <= at < s.end)
        return next(held, 0.0)


def read_evidence(
    question: str, evidence: Sequence[Evidence], reader: PassageReader
) -> list[ReadPassage]:
    """The first MAX_READ pieces of `evidence` with their readings, in order."""
    first = evidence[:MAX_READ]
    readings = reader.read(question, [item.passage.text for item in first])
    return [ReadPassage(*row) for row in zip(first, range(len(first)), readings, strict=True)]


def spoken_by(sentence: str, question: str, reader: PassageReader) -> Side | None:
    """The side that `sentence` alone takes on the yes/no `question`; None where it is silent."""
    [reading] = reader.read(question, [sentence])
    if reading.silent >= max(reading.yes, reading.no):
        return None
    return "yes" if reading.yes > reading.no else "no"
