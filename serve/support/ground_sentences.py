"""Ground given sentences: find PMIDs that support each, and PMIDs that contradict it.

TREC BioGen's task A (paper 004, section 2.3). Contradictions are also searched for with the
negated and opposite forms of the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cluster.answers import Evidence
from cluster.models.readings import Reading
from serve.question.contrary_forms import contrary_forms
from serve.support.attribute_sentences import Support, SupportScorer, score_rows
from serve.support.weigh_evidence import Thresholds, strongest

Search = Callable[[str], Sequence[Evidence]]
Read = Callable[[str, Sequence[str]], Sequence[Reading]]


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
) -> Grounds:
    """Return at most MAX_PMIDS PMIDs for and against a sentence, without those in `existing`.

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
    return Grounds(strongest(supporting, neither), strongest(contrary, neither))


class ReaderSupport:
    """Adds the reader's contradictions to the scores of a scorer that judges by wording.

    The reader is asked whether the claim is true. If "no" is its most probable reading of a
    premise, the premise contradicts the claim with the relevance times the probability of "no".
    """

    def __init__(self, scorer: SupportScorer, read: Read) -> None:
        self._scorer = scorer
        self._read = read

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """See `SupportScorer.score`."""
        found = self._scorer.score(pairs)
        for claim in dict.fromkeys(claim for _, claim in pairs):
            places = [place for place, pair in enumerate(pairs) if pair[1] == claim]
            question = f"Is it true that {claim.rstrip('.')}?"
            readings = self._read(question, [pairs[place][0] for place in places])
            for place, reading in zip(places, readings, strict=True):
                if reading.no > max(reading.yes, reading.silent):
                    against = reading.relevance * reading.no
                    found[place] = Support(0.0, against)
        return found
