"""Determine the stance of each piece of evidence on a claim: for it, against it, or neither.

All stances are derived from the scorer's scores and two thresholds, so they are comparable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cluster.answers import Evidence, Sentence
from serve.support.attribute_sentences import (
    MAX_PMIDS,
    Stance,
    Support,
    SupportScorer,
    score_rows,
    split_sentences,
)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Minimum scores at which a passage supports or contradicts a sentence."""

    support: float = 0.5
    contradiction: float = 0.5

    def stance(self, support: Support) -> Stance:
        """Return the side that reaches its threshold; if both do, the stronger side."""
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
    """Return (for, against): at most `limit` passages each, strongest first (paper 004, 2.4).

    Neutral passages fill the first list, in the order of `evidence`: if the claim is a question,
    few passages entail it.
    """
    row = score_rows([claim], evidence, scorer)[0] if evidence else []
    stances = [thresholds.stance(support) for support in row]
    ranked = sorted(range(len(row)), key=lambda place: -row[place].score)
    for_ = [place for place in ranked if stances[place] == "support"]
    for_ += [place for place in range(len(row)) if stances[place] == "neutral"]
    against = sorted(
        (place for place in range(len(row)) if stances[place] == "contradict"),
        key=lambda place: -row[place].against,
    )
    return [evidence[p] for p in for_[:limit]], [evidence[p] for p in against[:limit]]


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
        against: dict[int, float] = {}
        cited = set(sentence.pmids)
        for item, support in zip(evidence, row, strict=True):
            stance = thresholds.stance(support)
            if stance == "support":
                cited.add(item.passage.pmid)
                stances[item.passage.id] = "support"
            elif stance == "contradict":
                against[item.passage.pmid] = max(
                    against.get(item.passage.pmid, 0.0), support.against
                )
                if stances[item.passage.id] == "neutral":
                    stances[item.passage.id] = "contradict"
        pmids = strongest(against, cited)
        noted.append(replace(sentence, contradicted=pmids))
    return tuple(noted), stances


def strongest(scores: Mapping[int, float], without: set[int]) -> tuple[int, ...]:
    """Return the MAX_PMIDS best PMIDs, except `without`; ties keep the order of `scores`."""
    ranked = sorted(scores.items(), key=lambda entry: -entry[1])
    return tuple(pmid for pmid, _ in ranked if pmid not in without)[:MAX_PMIDS]


def contradicting_sentence(
    ideal: Sequence[Sentence],
    evidence: Sequence[Evidence],
    scorer: SupportScorer,
    thresholds: Thresholds,
) -> Sentence | None:
    """Return the evidence sentence that most contradicts the answer, prefixed "In contrast:".

    Returns None if nothing contradicts the answer, if the answer already cites a contradicting
    source, or if the prefixed sentence is not supported by its source.
    """
    cited = {pmid for sentence in ideal for pmid in sentence.pmids}
    against = {pmid for sentence in ideal for pmid in sentence.contradicted}
    if not against or against & cited:
        return None
    triples = [
        (part, sentence.text, item.passage.pmid)
        for sentence in ideal
        for item in evidence
        if item.passage.pmid in sentence.contradicted
        for part in split_sentences(item.passage.text)
    ]
    supports = scorer.score([(part, said) for part, said, _ in triples])
    best = max(range(len(triples)), key=lambda place: supports[place].against)
    part, _, pmid = triples[best]
    said = f"In contrast: {part}"
    support = scorer.score([(part, said)])[0].score
    return Sentence(said, (pmid,), round(support, 4)) if support >= thresholds.support else None
