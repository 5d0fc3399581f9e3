"""Ground given sentences: find PMIDs that support each, and PMIDs that contradict it.

TREC BioGen's task A (paper 004, section 2.3). Contradictions are also searched for with the
negated and opposite forms of the sentence.
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
    """PMIDs for and against a sentence, strongest first; no PMID is in both."""

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
    """Return at most `limit` PMIDs for and against a sentence, without those in `existing`.

    `search` uses the preset's retrieval; `search_words` uses words only, for the contrary forms. A
    citation's score on each side is that of its best passage. Citations that reach both thresholds
    are left out.
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
    """Wraps a scorer; a premise with the opposite of one of the claim's words contradicts it.

    The contradiction score is the share of words in common. Similarity alone would see support.
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
