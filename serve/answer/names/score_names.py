"""Rank the names of a factoid answer by the reader and a language model together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from serve.answer.names.rank_names import RankedName, rank_spans
from serve.answer.read_evidence import ReadCitation

# Number of names that are scored: the best ones by the reader's score.
MAX_SCORED = 30
# Largest number of the evidence's sentences, and of their characters, that the model reads.
MAX_SENTENCES, MAX_CHARACTERS = 5, 1300
# A sentence's score is divided by 1 plus this number times the rank of its citation.
SENTENCE_RANK_LOSS = 0.1
# Weight of the model's mean log-probability beside the logarithm of the reader's score.
MODEL_WEIGHT = 1.0


class NameModel(Protocol):
    """Language model that estimates how probable a name is as the answer."""

    def score(
        self, question: str, sentences: Sequence[str], names: Sequence[str]
    ) -> NDArray[np.float32]:
        """Return the mean log-probability of each name (cluster.models.name_scorer.NameScorer)."""
        ...


def weigh_names(body: str, citations: Sequence[ReadCitation], model: NameModel) -> list[RankedName]:
    """Return the names that the reader marks, ranked by the reader and `model` together.

    Each spelling is a name by itself. The score of a name is the reader's score times the name's
    probability: the exponential of its mean log-probability.
    """
    ranked = rank_spans(body, citations)[:MAX_SCORED]
    names = [name.names[0] for name in ranked]
    scores = model.score(body, best_sentences(citations), names).tolist()
    weighed = [
        replace(name, score=name.score * math.exp(MODEL_WEIGHT * score))
        for name, score in zip(ranked, scores, strict=True)
    ]
    return sorted(weighed, key=lambda name: -name.score)


def best_sentences(citations: Sequence[ReadCitation]) -> list[str]:
    """Return the sentences with the reader's best scores, in the order of their citations."""
    found = [
        (
            s.score * c.reading.relevance / (1 + SENTENCE_RANK_LOSS * c.rank),
            c.rank,
            s.begin,
            c.sentence(s),
        )
        for c in citations
        for s in c.reading.sentences
    ]
    best = sorted(found, key=lambda row: (-row[0], *row[1:]))[:MAX_SENTENCES]
    texts, left = [], MAX_CHARACTERS
    for _, _, _, text in sorted(best, key=lambda row: row[1:]):
        texts.append(text[:left])
        left -= len(texts[-1])
    return [text for text in texts if text]
