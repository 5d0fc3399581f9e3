"""What the reader (cluster.models.reader) says of a passage; needs no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span of a passage, in code points, end exclusive; `score` is a probability."""

    begin: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What one passage says to one question; all figures are probabilities.

    `yes`, `no` and `silent` add up to 1 and are of use for yes/no questions alone. `names` are
    the spans that may name the answer, `sentences` all sentences that the model saw, each with how
    much of an answer it is; both in the order of the passage.
    """

    relevance: float
    yes: float
    no: float
    silent: float
    names: tuple[ScoredSpan, ...] = ()
    sentences: tuple[ScoredSpan, ...] = ()
