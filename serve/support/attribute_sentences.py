"""Attribute the sentences of an answer to the citations that support them.

A `SupportScorer` rates how well a passage supports a sentence: by similarity and numbers
(`SimilaritySupport`), to which `ReaderSupport` adds contradictions found by the reader model, or by
a natural language inference model (`check_entailment.NliSupport`).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np

from cluster.answers import Evidence, Sentence
from cluster.models.readings import Reading
from cluster.text.sentences import asks, sentence_spans
from serve.support.compare_wording import VERDICT, coverage, numbers_agree, read_wording

log = logging.getLogger(__name__)

Encode = Callable[[Sequence[str]], np.ndarray]
Read = Callable[[str, Sequence[str]], Sequence[Reading]]
Stance = Literal["support", "contradict", "neutral", "unknown"]

# Maximum number of PMIDs that a sentence cites, or that contradict it.
MAX_PMIDS = 3
# A second or third PMID is cited only if its score is at least this share of the best score.
SECOND_PMID_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Support:
    """How strongly a premise supports and contradicts a hypothesis, each 0 to 1."""

    score: float
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
    claimed: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> list[Sentence | None]:
    """Return each sentence with 1 to MAX_PMIDS PMIDs, or None if no evidence supports it.

    A citation's score is that of its best passage. PMIDs are ordered by score; ties keep the order
    of `evidence`. The first must reach `threshold`, and the others must also reach
    SECOND_PMID_SHARE of the first one's score. If any PMIDs `claimed` for a sentence reach
    `threshold`, only those are cited.
    """
    found: list[Sentence | None] = []
    for sentence, row in zip(sentences, score_rows(sentences, evidence, scorer), strict=True):
        best = best_scores((i.passage.pmid, s.score) for i, s in zip(evidence, row, strict=True))
        found.append(_cite(sentence, best, threshold, claimed.get(sentence, ())))
    return found


def score_rows(
    sentences: Sequence[str], evidence: Sequence[Evidence], scorer: SupportScorer
) -> list[list[Support]]:
    """Return the Support of each sentence by each passage, with one call of `scorer`."""
    pairs = [(item.passage.text, sentence) for sentence in sentences for item in evidence]
    supports = scorer.score(pairs) if pairs else []
    width = len(evidence)
    return [supports[n * width : (n + 1) * width] for n in range(len(sentences))]


def best_scores(scores: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Return the highest score of each PMID."""
    best: dict[int, float] = {}
    for pmid, score in scores:
        best[pmid] = max(best.get(pmid, 0.0), score)
    return best


def _cite(
    sentence: str, best: Mapping[int, float], threshold: float, claimed: Sequence[int]
) -> Sentence | None:
    ranked = sorted(best.items(), key=lambda entry: -entry[1])
    if not ranked or ranked[0][1] < threshold:
        return None
    top = ranked[0][1]
    right = [pmid for pmid in dict.fromkeys(claimed) if best.get(pmid, 0.0) >= threshold]
    if right:
        best_claimed = max(best[pmid] for pmid in right)
        return Sentence(sentence, tuple(right[:MAX_PMIDS]), round(best_claimed, 4))
    floor = max(threshold, SECOND_PMID_SHARE * top)
    pmids = tuple(pmid for pmid, score in ranked[:MAX_PMIDS] if score >= floor)
    return Sentence(sentence, pmids, round(top, 4))


class SimilaritySupport:
    """Support by the premise's best sentence: the mean of cosine and content-word coverage.

    Without an encoder, the coverage replaces the cosine. The score is 0 if that sentence lacks a
    number of the hypothesis or is a question.
    """

    def __init__(self, encode: Encode | None) -> None:
        self._encode = encode

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """Return one Support for each pair, in order; a premise without sentences scores 0."""
        parts = {premise: split_sentences(premise) for premise, _ in pairs}
        texts = {text for premise in parts.values() for text in premise}
        vectors = self._vectors(texts | {said for _, said in pairs})
        return [
            Support(max((_similarity(part, said, vectors) for part in parts[premise]), default=0.0))
            for premise, said in pairs
        ]

    def _vectors(self, texts: Set[str]) -> dict[str, np.ndarray]:
        """Return the vector of each text, or {} without an encoder."""
        if self._encode is None or not texts:
            return {}
        rows = sorted(texts)
        return dict(zip(rows, self._encode(rows), strict=True))


def _similarity(part: str, said: str, vectors: Mapping[str, np.ndarray]) -> float:
    source, hypothesis = read_wording(part), read_wording(said)
    if not numbers_agree(hypothesis, source) or asks(part):
        return 0.0
    held = coverage(hypothesis, source)
    cosine = float(vectors[part] @ vectors[said]) if vectors else held
    return min(1.0, (max(0.0, cosine) + held) / 2)


class ReaderSupport:
    """Adds contradictions, found by the reader model, to the scores of another scorer.

    The reader model is asked whether the claim is true. For each claim it reads at most `most`
    premises (None: no limit), those whose score or share of the claim's words is highest and at
    least `least`, without those that quote the claim. A premise contradicts the claim if "no" is
    the most probable answer for the premise or for its nearest sentence; `against` is then the
    relevance times the probability of "no".
    """

    def __init__(
        self, scorer: SupportScorer, read: Read, least: float = 0.0, most: int | None = None
    ) -> None:
        self._scorer = scorer
        self._read = read
        self._least = least
        self._most = most

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """Return one Support for each (premise, claim), in order."""
        found = self._scorer.score(pairs)
        near: dict[str, list[tuple[float, int]]] = defaultdict(list)
        for position, (premise, claim) in enumerate(pairs):
            nearness = max(_shared(claim, premise), found[position].score)
            if nearness >= self._least and claim not in premise:
                near[claim].append((nearness, position))
        for claim, ranked in near.items():
            places = [position for _, position in sorted(ranked, reverse=True)[: self._most]]
            parts = {
                pairs[position][0]: _nearest_sentence(claim, pairs[position][0])
                for position in places
            }
            texts = list(dict.fromkeys((*parts, *parts.values())))
            read = dict(zip(texts, self._read(as_question(claim), texts), strict=True))
            for position in places:
                both = (read[pairs[position][0]], read[parts[pairs[position][0]]])
                denied = [r for r in both if r.no > max(r.yes, r.silent)]
                if denied:
                    found[position] = Support(0.0, max(r.relevance * r.no for r in denied))
        return found


def entailment(
    pairs: Sequence[tuple[str, str]], scorer: SupportScorer | None, read: Read
) -> list[float]:
    """Return how strongly each text supports its claim, 0 to 1, for pairs (text, claim).

    Without `scorer`, an NLI model, it is the relevance of the text to the question whether the
    claim is true, times the probability of "yes", both by the reader model.
    """
    if scorer is not None:
        return [support.score for support in scorer.score(pairs)]
    texts: dict[str, list[str]] = defaultdict(list)
    for text, claim in pairs:
        texts[claim].append(text)
    known = {
        (text, claim): reading.relevance * reading.yes
        for claim, several in texts.items()
        for text, reading in zip(several, read(as_question(claim), several), strict=True)
    }
    return [known[pair] for pair in pairs]


def _shared(claim: str, text: str) -> float:
    """Return the share of the claim's content words that the text has."""
    return coverage(read_wording(claim), read_wording(text))


def _nearest_sentence(claim: str, premise: str) -> str:
    """Return the sentence of the premise that shares most words with the claim."""
    parts = split_sentences(premise)
    return max(parts, key=lambda part: _shared(claim, part), default=premise)


def as_question(claim: str) -> str:
    """Return the question whether a claim is true; a question is returned as it is."""
    if asks(claim):
        return claim
    return f"Is it true that {VERDICT.sub('', claim).rstrip('.')}?"


def cached_encode(encode: Encode) -> Encode:
    """Return `encode` with a cache, because the steps of an answer encode the same sentences."""
    known: dict[str, np.ndarray] = {}

    def encode_new(texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        return np.stack([known[text] for text in texts])

    return encode_new


class FallbackScorer:
    """Scores with the first of `scorers` that has not failed, or with `last` if all have.

    Each scorer has a note, which is added to `losses` if it fails. Scores are cached, because the
    steps of an answer score the same pairs.
    """

    def __init__(self, scorers: Sequence[tuple[SupportScorer, str]], last: SupportScorer) -> None:
        self._scorers = list(scorers)
        self._last = last
        self._known: dict[tuple[str, str], Support] = {}
        self.losses: list[str] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """Return one Support for each pair, in order; a failure is raised only if `last` fails."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if new:
            self._known.update(zip(new, self._score(new), strict=True))
        return [self._known[pair] for pair in pairs]

    def _score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        while self._scorers:
            scorer, note = self._scorers[0]
            try:
                return scorer.score(pairs)
            except Exception:
                # Model failures have no common type: out of memory, a lost device, bad weights.
                log.exception("support: the model cannot score %d pairs", len(pairs))
                self._scorers.pop(0)
                self.losses.append(note)
        return self._last.score(pairs)


# Cached because each sentence of an answer is compared with the same passages.
@lru_cache(maxsize=2048)
def stated_text(text: str) -> str:
    """Return the text without its questions."""
    return " ".join(part for part in split_sentences(text) if not asks(part))


def split_sentences(text: str) -> list[str]:
    """Return the non-empty sentences of a text, stripped of white space."""
    parts = (text[begin:end].strip() for begin, end in sentence_spans(text))
    return [part for part in parts if part]
