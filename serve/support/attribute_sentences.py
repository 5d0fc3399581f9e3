"""Attribute the sentences of an answer to the citations that support them.

A `SupportScorer` rates how well a passage supports a sentence: by similarity and lexical checks
(`SimilaritySupport`), or by a natural language inference model (`check_entailment.NliSupport`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np

from cluster.answers import Evidence, Sentence
from cluster.text.sentences import asks, sentence_spans
from serve.support.compare_wording import (
    contradicts,
    coverage,
    numbers_agree,
    polarity_agrees,
    read_wording,
)

log = logging.getLogger(__name__)

Encoder = Callable[[Sequence[str]], np.ndarray]
Stance = Literal["support", "contradict", "neutral", "unknown"]

# Minimum coverage of content words for a contradiction. With less shared wording, a passage of
# opposite polarity is probably about something else.
CONTRADICTION_COVERAGE = 0.5
# A second or third PMID is cited only if its score is at least this share of the best score.
SECOND_PMID_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Support:
    """Support score of a premise for a hypothesis, 0 to 1, and the resulting stance.

    `against` is the contradiction score, 0 to 1.
    """

    score: float
    stance: Stance
    against: float = 0.0


class SupportScorer(Protocol):
    """Scores how well premises support hypotheses."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """Return one Support for each (premise, hypothesis), in order."""
        ...


def attribute(
    sentences: Sequence[str],
    evidence: Sequence[Evidence],
    scorer: SupportScorer,
    *,
    threshold: float,
    max_pmids: int = 3,
    claimed: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> list[Sentence | None]:
    """Return each sentence with 1 to `max_pmids` PMIDs, or None if nothing supports it.

    A citation's score is that of its best passage. PMIDs are ordered by score; ties keep the order
    of `evidence`. The first must reach `threshold`, and the others must also reach
    SECOND_PMID_SHARE of the first one's score. If any PMIDs `claimed` for a sentence reach
    `threshold`, only those are cited.
    """
    found: list[Sentence | None] = []
    for sentence, row in zip(sentences, score_rows(sentences, evidence, scorer), strict=True):
        best: dict[int, float] = {}
        for item, support in zip(evidence, row, strict=True):
            pmid = item.passage.pmid
            best[pmid] = max(best.get(pmid, 0.0), support.score)
        found.append(_cite(sentence, best, threshold, max_pmids, claimed.get(sentence, ())))
    return found


def score_rows(
    sentences: Sequence[str], evidence: Sequence[Evidence], scorer: SupportScorer
) -> list[list[Support]]:
    """Return the Support of each sentence by each passage, with one call of `scorer`."""
    pairs = [(item.passage.text, sentence) for sentence in sentences for item in evidence]
    supports = scorer.score(pairs) if pairs else []
    width = len(evidence)
    return [supports[n * width : (n + 1) * width] for n in range(len(sentences))]


def _cite(
    sentence: str,
    best: Mapping[int, float],
    threshold: float,
    max_pmids: int,
    claimed: Sequence[int],
) -> Sentence | None:
    ranked = sorted(best.items(), key=lambda entry: -entry[1])
    if not ranked or ranked[0][1] < threshold:
        return None
    top = ranked[0][1]
    right = [pmid for pmid in dict.fromkeys(claimed) if best.get(pmid, 0.0) >= threshold]
    if right:
        best_claimed = max(best[pmid] for pmid in right)
        return Sentence(sentence, tuple(right[:max_pmids]), round(best_claimed, 4))
    floor = max(threshold, SECOND_PMID_SHARE * top)
    pmids = tuple(pmid for pmid, score in ranked[:max_pmids] if score >= floor)
    return Sentence(sentence, pmids, round(top, 4))


class SimilaritySupport:
    """Support by the premise's best sentence: the mean of cosine and content-word coverage.

    The score is 0 if that sentence lacks a number of the hypothesis, if one negates what the other
    affirms, if their directions are opposite, or if the sentence is a question.
    """

    def __init__(self, encode: Encoder) -> None:
        self._encode = encode

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """See `SupportScorer.score`; a premise without sentences scores 0, neutral."""
        parts = {premise: split_sentences(premise) for premise, _ in pairs}
        texts = {text for premise in parts.values() for text in premise}
        rows = sorted(texts | {hypothesis for _, hypothesis in pairs})
        if not rows:
            return []
        place = {text: row for row, text in enumerate(rows)}
        vectors = self._encode(rows)
        return [
            max(
                (
                    _support(part, said, float(vectors[place[part]] @ vectors[place[said]]))
                    for part in parts[premise]
                ),
                key=_strength,
                default=Support(0.0, "neutral"),
            )
            for premise, said in pairs
        ]


class WordingSupport:
    """Support by wording alone, for use without an encoder.

    Like `SimilaritySupport`, with the coverage of content words instead of the cosine.
    """

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """See `SupportScorer.score`; a premise without sentences scores 0, neutral."""
        parts = {premise: split_sentences(premise) for premise, _ in pairs}
        return [
            max(
                (
                    _support(part, said, coverage(read_wording(said), read_wording(part)))
                    for part in parts[premise]
                ),
                key=_strength,
                default=Support(0.0, "neutral"),
            )
            for premise, said in pairs
        ]


def _support(part: str, said: str, cosine: float) -> Support:
    source, hypothesis = read_wording(part), read_wording(said)
    held = coverage(hypothesis, source)
    if not polarity_agrees(hypothesis, source):
        against = held if contradicts(hypothesis, source) else 0.0
        return Support(
            0.0, "contradict" if against >= CONTRADICTION_COVERAGE else "neutral", against
        )
    if not numbers_agree(hypothesis, source) or asks(part):
        return Support(0.0, "neutral")
    score = min(1.0, (max(0.0, cosine) + held) / 2)
    return Support(score, "support" if held >= CONTRADICTION_COVERAGE else "neutral")


def _strength(support: Support) -> tuple[float, bool, float]:
    return support.score, support.stance == "contradict", support.against


def remember(encode: Encoder) -> Encoder:
    """Return `encode` with a cache, because the steps of an answer encode the same sentences."""
    known: dict[str, np.ndarray] = {}

    def encode_new(texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        return np.stack([known[text] for text in texts])

    return encode_new


class RememberingScorer:
    """Caches the scores of pairs, because the steps of an answer score the same ones."""

    def __init__(self, scorer: SupportScorer) -> None:
        self._scorer = scorer
        self._known: dict[tuple[str, str], Support] = {}

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """See `SupportScorer.score`; results are cached for the lifetime of this object."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if new:
            self._known.update(zip(new, self._scorer.score(new), strict=True))
        return [self._known[pair] for pair in pairs]


class SecondScorer:
    """Scores with `first`, and with `second` after `first` has failed (`lost`)."""

    def __init__(self, first: SupportScorer | None, second: SupportScorer) -> None:
        self._first = first
        self._second = second
        self.lost = False

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """See `SupportScorer.score`; a failure of `first` is logged, not raised."""
        if self._first is not None and not self.lost:
            try:
                return self._first.score(pairs)
            except Exception:
                # Model failures have no common type: out of memory, a lost device, bad weights.
                log.exception("support: the model cannot score %d pairs", len(pairs))
                self.lost = True
        return self._second.score(pairs)


# Cached because each sentence of an answer is compared with the same passages.
@lru_cache(maxsize=2048)
def stated_text(text: str) -> str:
    """Return the text without its questions."""
    return " ".join(part for part in split_sentences(text) if not asks(part))


def split_sentences(text: str) -> list[str]:
    """Return the non-empty sentences of a text, stripped of white space."""
    parts = (text[begin:end].strip() for begin, end in sentence_spans(text))
    return [part for part in parts if part]
