"""Grounding of given sentences: PMIDs that support each, and PMIDs that contradict it.

TREC BioGen's task A (paper 004, section 2.3), with contradictions asked for by the
sentence's negated and opposite forms too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cluster.answers import Evidence
from serve.question.contrary_forms import contrary_forms, opposed
from serve.support.attribute_sentences import Support, SupportScorer, score_rows, split_sentences
from serve.support.weigh_evidence import MAX_PMIDS, Thresholds, strongest

Search = Callable[[str], Sequence[Evidence]]


@dataclass(frozen=True, slots=True)
class Grounds:
    """PMIDs for and against a sentence, the strongest first, none on both sides."""

    supported: tuple[int, ...]
    contradicted: tuple[int, ...]


def ground_sentence(
    sentence: str,
    existing: Sequence[int],
    search: Search,
    search_words: Search,
    scorer: SupportScorer,
    thresholds: Thresholds,
    limit: int = MAX_PMIDS,
) -> Grounds:
    """At most `limit` PMIDs on either side, none of `existing`.

    `search` finds evidence by the preset's own way, `search_words` by words alone, for the
    contrary forms. A citation counts by its best passage on either side; one that reaches
    both thresholds is on neither.
    """
    found: dict[str, Evidence] = {item.passage.id: item for item in search(sentence)}
    for form in contrary_forms(sentence):
        found.update({item.passage.id: item for item in search_words(form)})
    evidence = list(found.values())
    row = score_rows([sentence], evidence, scorer)[0] if evidence else []
    for_: dict[int, float] = {}
    against: dict[int, float] = {}
    for item, support in zip(evidence, row, strict=True):
        pmid = item.passage.pmid
        for_[pmid] = max(for_.get(pmid, 0.0), support.score)
        against[pmid] = max(against.get(pmid, 0.0), support.against)
    supporting = {p: s for p, s in for_.items() if s >= thresholds.support}
    contrary = {p: s for p, s in against.items() if s >= thresholds.contradiction}
    neither = set(existing) | (supporting.keys() & contrary.keys())
    return Grounds(strongest(supporting, neither, limit), strongest(contrary, neither, limit))


class OpposingSupport:
    """Another scorer's word, except where a premise says the opposite of a claim's word.

    It contradicts the claim then, by the words shared: similarity would call it support.
    """

    def __init__(self, scorer: SupportScorer) -> None:
        self._scorer = scorer

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """See `SupportScorer.score`."""
        found = []
        for (premise, claim), support in zip(pairs, self._scorer.score(pairs), strict=True):
            opposite = max((opposed(claim, part) for part in split_sentences(premise)), default=0.0)
            found.append(Support(0.0, "contradict", opposite) if opposite else support)
        return found
