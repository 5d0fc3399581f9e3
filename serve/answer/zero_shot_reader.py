"""A reader without training: a general cross-encoder for relevance, an NLI model for stance.

The NLI model is asked whether a text entails that the answer to the question is yes (Yin, Hay and
Roth 2019, "Benchmarking Zero-shot Text Classification"). It does not mark names; a language model
has to find them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cluster.models.readings import Reading, ScoredSpan
from cluster.text.sentences import sentence_spans
from serve.support.attribute_sentences import SupportScorer

HYPOTHESIS = 'The answer to the question "{}" is yes.'
# Number of sentences of a text, the most relevant ones, that the NLI model reads.
PREMISE_SENTENCES = 4


class PairScorer(Protocol):
    """Model that scores passages, such as `serve.search.rerank_passages.CrossEncoderReranker`."""

    def score(self, question: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return scores of shape (n,), 0 to 1, in the order of `passages`."""
        ...


class ZeroShotReader:
    """Reads texts with two models that were not trained for it."""

    def __init__(self, relevance: PairScorer, entailment: SupportScorer) -> None:
        self._relevance = relevance
        self._entailment = entailment

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """Return one Reading for each text, in order; an empty text has relevance 0 and no stance.

        A text is as relevant as its best sentence; its stance is that of its best sentences.
        """
        spans = [sentence_spans(text) for text in texts]
        sentences = [t[b:e] for t, found in zip(texts, spans, strict=True) for b, e in found]
        scores = self._relevance.score(question, sentences).tolist()
        ends = list(accumulate(map(len, spans), initial=0))
        scored = [
            tuple(ScoredSpan(b, e, s) for (b, e), s in zip(found, scores[at:], strict=False))
            for found, at in zip(spans, ends, strict=False)
        ]
        premises = [_premise(text, found) for text, found in zip(texts, scored, strict=True)]
        hypothesis = HYPOTHESIS.format(question)
        supports = self._entailment.score([(premise, hypothesis) for premise in premises])
        return [
            Reading(
                relevance=max((span.score for span in found), default=0.0),
                yes=support.score if found else 0.0,
                no=support.against if found else 0.0,
                silent=max(0.0, 1 - support.score - support.against) if found else 1.0,
                sentences=found,
            )
            for found, support in zip(scored, supports, strict=True)
        ]


def _premise(text: str, sentences: Sequence[ScoredSpan]) -> str:
    best = sorted(sentences, key=lambda span: -span.score)[:PREMISE_SENTENCES]
    return " ".join(text[s.begin : s.end] for s in sorted(best, key=lambda span: span.begin))
