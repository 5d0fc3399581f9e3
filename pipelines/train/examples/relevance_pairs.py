"""Pair questions with relevant and irrelevant documents (paper 003, section 3.1)."""

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
    """Pair each question with its gold rows of `texts`, its `written` documents and random rows.

    `written` maps question ids to pseudo-documents. For each relevant document, `negatives` random
    rows are drawn that are not gold, without repetition per question; fewer if `texts` has no more.
    Raises InputError if no question has a relevant document.
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
            "every citation of the corpus is gold for its question: --corpus needs others too, as "
            "negative examples"
        )
    return pairs


def _random_rows(draw: random.Random, count: int, rows: int, gold: frozenset[int]) -> list[int]:
    # Drawn one by one, to avoid a list of the size of the corpus for each question.
    found: dict[int, None] = {}
    while len(found) < min(count, rows - len(gold)):
        row = draw.randrange(rows)
        if row not in gold:
            found[row] = None
    return list(found)
