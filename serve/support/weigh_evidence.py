"""Determine the stance of each piece of evidence on a claim: for it, against it, or neither.

All stances are derived from the scorer's scores and two thresholds, so they are comparable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cluster.answers import Evidence, Sentence
from serve.support.attribute_sentences import (
    MAX_PMIDS,
    Stance,
    Support,
    SupportScorer,
    best_scores,
    score_rows,
)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Minimum scores at which a passage supports or contradicts a sentence."""

    support: float = 0.5
    contradiction: float = 0.5

    def stance(self, support: Support) -> Stance:
        """Return the side that reaches its threshold, the stronger one if both do, or "neutral"."""
        for_, against = support.score >= self.support, support.against >= self.contradiction
        if for_ and against:
            return "support" if support.score >= support.against else "contradict"
        return "support" if for_ else "contradict" if against else "neutral"


def split_by_stance(
    claim: str,
    evidence: Sequence[Evidence],
    scorer: SupportScorer,
    thresholds: Thresholds,
    limit: int,
) -> tuple[list[Evidence], list[Evidence]]:
    """Return (for, against): up to `limit` passages each, best first (paper 004, section 2.4).

    Neutral passages follow in the first list, in the order of `evidence`, because few passages
    entail a claim that is a question.
    """
    row = score_rows([claim], evidence, scorer)[0] if evidence else []
    sides: dict[Stance, list[tuple[Evidence, Support]]] = defaultdict(list)
    for item, support in zip(evidence, row, strict=True):
        sides[thresholds.stance(support)].append((item, support))
    for_ = sorted(sides["support"], key=lambda found: -found[1].score) + sides["neutral"]
    against = sorted(sides["contradict"], key=lambda found: -found[1].against)
    return [item for item, _ in for_[:limit]], [item for item, _ in against[:limit]]


def note_contradictions(
    ideal: Sequence[Sentence],
    evidence: Sequence[Evidence],
    scorer: SupportScorer,
    thresholds: Thresholds,
) -> tuple[tuple[Sentence, ...], dict[str, Stance]]:
    """Return the sentences with contradicting PMIDs, and the stance of each passage by its id.

    A citation that the sentence cites, or that has another passage supporting it, is not listed as
    contradicting. A passage contradicts the answer if it contradicts a sentence and supports none.
    """
    rows = score_rows([sentence.text for sentence in ideal], evidence, scorer)
    noted = []
    stances: dict[str, Stance] = {item.passage.id: "neutral" for item in evidence} if rows else {}
    for sentence, row in zip(ideal, rows, strict=True):
        against: list[tuple[int, float]] = []
        cited = set(sentence.pmids)
        for passage, support in zip((item.passage for item in evidence), row, strict=True):
            stance = thresholds.stance(support)
            if stance == "support":
                cited.add(passage.pmid)
                stances[passage.id] = stance
            elif stance == "contradict":
                against.append((passage.pmid, support.against))
                if stances[passage.id] == "neutral":
                    stances[passage.id] = stance
        noted.append(replace(sentence, contradicted=strongest(best_scores(against), cited)))
    return tuple(noted), stances


def strongest(scores: Mapping[int, float], without: set[int]) -> tuple[int, ...]:
    """Return the MAX_PMIDS best PMIDs, except `without`; ties keep the order of `scores`."""
    ranked = sorted(scores.items(), key=lambda entry: -entry[1])
    return tuple(pmid for pmid, _ in ranked if pmid not in without)[:MAX_PMIDS]
