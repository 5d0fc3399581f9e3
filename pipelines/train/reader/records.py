"""Training examples of the reader: a question, a text, and the known labels."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from cluster.text.sentences import sentence_spans
from pipelines.train.examples.mark_names import Marked

# Probabilities of (yes, no, silent).
Stance = tuple[float, float, float]
YES: Stance = (1.0, 0.0, 0.0)
NO: Stance = (0.0, 1.0, 0.0)
SILENT: Stance = (0.0, 0.0, 1.0)
# PubMedQA's "maybe": the text addresses the question but takes neither side for certain.
MAYBE: Stance = (0.3, 0.3, 0.4)
# Share of yes and of no examples if sides are balanced; the rest take no side.
SIDED = 0.42


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence of a text, in code points, and how well it answers the question, 0 to 1."""

    begin: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class ReaderExample:
    """A question and a text. A label that is None is unknown and adds nothing to the loss.

    `relevant` is whether the text answers the question, `stance` what it says to a yes/no
    question, `names` the spans that name the answer, `sentences` the sentences with their scores.
    `weight` multiplies the losses of relevance and stance.
    """

    question: str
    text: str
    relevant: float | None = None
    stance: Stance | None = None
    names: tuple[Marked, ...] | None = None
    sentences: tuple[ScoredSentence, ...] | None = None
    weight: float = 1.0


def sentences_with(names: Sequence[Marked], text: str) -> tuple[ScoredSentence, ...]:
    """Return the sentences of `text`, with score 1 for those in which a name begins."""
    return tuple(
        ScoredSentence(begin, end, float(any(begin <= name.begin < end for name in names)))
        for begin, end in sentence_spans(text)
    )


def opposite(stance: Stance) -> Stance:
    """Return the stance with yes and no swapped."""
    return stance[1], stance[0], stance[2]


def balance_sides(
    examples: Sequence[ReaderExample], count: int, draw: random.Random
) -> list[ReaderExample]:
    """Draw at most `count` examples, with as many answered yes as no.

    Two thirds of the questions on trials are answered no, and two thirds of BioASQ's are answered
    yes. A reader that learns these shares falls back on them if a text is difficult.
    """
    sides = {side: [e for e in examples if e.stance == side] for side in (YES, NO)}
    most = min(round(count * SIDED), *map(len, sides.values()))
    rest = [e for e in examples if e.stance not in (YES, NO)]
    drawn = [e for found in sides.values() for e in draw.sample(found, most)]
    return drawn + draw.sample(rest, min(len(rest), count - len(drawn)))
