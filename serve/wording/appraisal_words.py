"""Describe the strength of an answer's evidence in plain words, for all text clients."""

from __future__ import annotations

from cluster.answers import Answer
from cluster.appraisal import Agreement
from cluster.study_design.designs import DESIGN_WORDS


def notice_lines(answer: Answer) -> list[str]:
    """Return notices, such as retractions, of cited articles; without answer, of all found."""
    named = {p for s in answer.ideal for p in (*s.pmids, *s.contradicted)}
    cited = {i.passage.pmid: i.notice for i in answer.evidence if i.passage.pmid in named}
    offered = {} if answer.ideal else {c.pmid: c.notice for c in answer.citations}
    return [f"PMID {pmid}: {notice}" for pmid, notice in {**offered, **cited}.items() if notice]


def agreement_words(agreed: Agreement) -> str:
    """Return a clause that says how far the sources agree."""
    if agreed.sources == 1:
        does = "supports" if agreed.supporting else "contradicts"
        return f"the one source that takes a side {does} this answer"
    if agreed.supporting == agreed.sources:
        return f"all {agreed.sources} sources that take a side support this answer"
    return (
        f"{agreed.supporting} of {agreed.sources} sources that take a side support this answer "
        f"({agreed.weighted:.0%} if stronger study designs count more)"
    )


def weight_lines(answer: Answer) -> list[str]:
    """Return lines on study designs, agreement of sources, and concepts that are not named."""
    counts = answer.evidence_by.design
    designs = [f"{DESIGN_WORDS[d] or 'unknown'} {counts[d]}" for d in DESIGN_WORDS if d in counts]
    lines = [f"citations by design: {', '.join(designs)}"] if designs else []
    if answer.agreement:
        lines.append(f"agreement: {agreement_words(answer.agreement)}")
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
