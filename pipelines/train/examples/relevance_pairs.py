"""Questions with documents that are relevant to them, or are not (paper 003, section 3.1)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.errors import InputError
from pipelines.train.examples.read_questions import GoldQuestion


@dataclass(frozen=True, slots=True)
class RelevancePair:
    """A question and the text of a document."""

    question: str
    text: str
    relevant: bool


def make_pairs(
    questions: Sequence[GoldQuestion],
    written: Mapping[str, Sequence[str]],
    texts: Sequence[str],
    negatives: int,
    seed: int,
) -> list[RelevancePair]:
    """The gold rows of `texts` and the `written` documents of each question, and random rows.

    `written` has the documents by the question's id. For each relevant document come `negatives`
    rows that are not the question's gold, each once a question; fewer where `texts` has no more.
    Raises InputError where it has none at all.
    """
    draw = random.Random(seed)
    pairs: list[RelevancePair] = []
    for question in questions:
        relevant = [texts[row] for row in sorted(question.gold)]
        relevant += written.get(question.id, ())
        others = _random_rows(draw, negatives * len(relevant), len(texts), question.gold)
        pairs += [RelevancePair(question.text, text, True) for text in relevant]
        pairs += [RelevancePair(question.text, texts[row], False) for row in others]
    if all(pair.relevant for pair in pairs):
        raise InputError(
            "every citation of the corpus is gold to its question: --corpus needs others too, to "
            "learn what is not relevant"
        )
    return pairs


def _random_rows(draw: random.Random, count: int, rows: int, gold: frozenset[int]) -> list[int]:
    # Drawn one by one: a list of all other rows, for each question, would be of the corpus' size.
    found: dict[int, None] = {}
    while len(found) < min(count, rows - len(gold)):
        row = draw.randrange(rows)
        if row not in gold:
            found[row] = None
    return list(found)
