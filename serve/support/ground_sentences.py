"""Ground given sentences: find PMIDs that support each, and PMIDs that contradict it.

TREC BioGen's task A (paper 004, section 2.3). Contradictions are also searched for with words of
negative findings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cluster.answers import Evidence
from serve.support.attribute_sentences import SupportScorer, best_scores, score_rows
from serve.support.weigh_evidence import Thresholds, strongest

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
) -> Grounds:
    """Return at most MAX_PMIDS PMIDs for and against a sentence, without those in `existing`.

    `search` uses the preset's retrieval; `search_words` uses words only, for `contrary_query`. A
    citation's score on each side is that of its best passage. Citations that reach both thresholds
    are left out.
    """
    found: dict[str, Evidence] = {item.passage.id: item for item in search(sentence)}
    found.update({item.passage.id: item for item in search_words(contrary_query(sentence))})
    evidence = list(found.values())
    row = score_rows([sentence], evidence, scorer)[0] if evidence else []
    scored = [(item.passage.pmid, support) for item, support in zip(evidence, row, strict=True)]
    supporting = best_scores((p, s.score) for p, s in scored if s.score >= thresholds.support)
    contrary = best_scores(
        (p, s.against) for p, s in scored if s.against >= thresholds.contradiction
    )
    neither = set(existing) | (supporting.keys() & contrary.keys())
    return Grounds(strongest(supporting, neither), strongest(contrary, neither))


def contrary_query(claim: str) -> str:
    """Return a word query that finds evidence against `claim`.

    Dense search finds text that resembles a claim, but rarely text that denies it (paper 004). The
    query has words that are typical of negative findings. "Not" is a stop word of the index.
    """
    return f"{claim.strip(' .')} no effect, no significant difference, not associated"
