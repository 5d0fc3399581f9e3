"""Describe the strength of an answer's evidence in plain words, for all text clients."""

from __future__ import annotations

from cluster.answers import Answer
from cluster.study_design.designs import DESIGN_WORDS
from serve.wording.verdict_words import agreement_words


def notice_lines(answer: Answer) -> list[str]:
    """Return notices, such as retractions, of cited articles; without answer, of all found."""
    named = {p for s in answer.ideal for p in (*s.pmids, *s.contradicted)}
    cited = {i.passage.pmid: i.notice for i in answer.evidence if i.passage.pmid in named}
    offered = {} if answer.ideal else {c.pmid: c.notice for c in answer.citations}
    return [f"PMID {pmid}: {notice}" for pmid, notice in {**offered, **cited}.items() if notice]


def weight_lines(answer: Answer) -> list[str]:
    """Return lines on study designs, agreement of sources, and concepts that are not named."""
    counts = answer.evidence_by.design
    designs = [f"{DESIGN_WORDS[d] or 'unknown'} {counts[d]}" for d in DESIGN_WORDS if d in counts]
    lines = [f"citations by design: {', '.join(designs)}"] if designs else []
    if answer.agreement:
        agreed = answer.agreement
        weight = f" ({agreed.weighted:.0%} if stronger study designs count more)"
        uneven = 0 < agreed.supporting < agreed.sources
        lines.append(f"agreement: {agreement_words(answer)}{weight if uneven else ''}")
    if covered := answer.concept_coverage:
        missing = {
            "the cited evidence": covered.missing_from_evidence,
            "the answer": covered.missing_from_answer,
        }
        lines += [
            f"concepts of the question that {place} does not name: {', '.join(names)}"
            for place, names in missing.items()
            if names
        ] or ["concepts of the question: all named"]
    return lines
