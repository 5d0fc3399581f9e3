"""Describe the strength of an answer's evidence in plain words, for all text clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cluster.answers import Answer, Sentence
from cluster.study_design.designs import DESIGN_WORDS
from serve.wording.verdict_words import agreement_words, weighted_words


def notice_lines(answer: Answer) -> list[str]:
    """Return notices, such as retractions, of cited articles; without answer, of all found."""
    named = {p for s in answer.ideal for p in (*s.pmids, *s.contradicted)}
    cited = {i.passage.pmid: i.notice for i in answer.evidence if i.passage.pmid in named}
    offered = {} if answer.ideal else {c.pmid: c.notice for c in answer.citations}
    return [f"PMID {pmid}: {notice}" for pmid, notice in {**offered, **cited}.items() if notice]


def traced_words(
    ideal: Iterable[Sentence], pmid: int, name: Callable[[int], str] = "PMID {}".format
) -> str:
    """Return how a source relates to the study that published a finding first; "" if unknown.

    For example "primary study, via PMID 5"; `name` names the article that reports the study.
    """
    traced = [sentence.traced for sentence in ideal if sentence.traced]
    for one in traced:
        if one.pmid == pmid:
            return f"primary study, via {name(one.via)}"
    secondary = any(one.kind == "secondary" and one.via == pmid for one in traced)
    return "secondary source, original study not identified" if secondary else ""


def traced_lines(answer: Answer) -> list[str]:
    """Return `traced_words` of each cited article of which they are known, with its PMID."""
    cited = dict.fromkeys(pmid for sentence in answer.ideal for pmid in sentence.pmids)
    known = {pmid: traced_words(answer.ideal, pmid) for pmid in cited}
    return [f"PMID {pmid}: {words}." for pmid, words in known.items() if words]


def weight_lines(answer: Answer) -> list[str]:
    """Return lines on study designs, agreement of sources, and concepts that are not named.

    There are none if the articles found are not about the question.
    """
    if answer.unrelated:
        return []
    counts = answer.evidence_by.design
    designs = [f"{DESIGN_WORDS[d] or 'unknown'} {counts[d]}" for d in DESIGN_WORDS if d in counts]
    found = sum(counts.values())
    articles = "1 article" if found == 1 else f"{found} articles"
    lines = [f"study designs of the {articles} found: {', '.join(designs)}"] if designs else []
    if agreed := answer.agreement:
        uneven = 0 < agreed.supporting < agreed.sources
        weight = f"; {weighted_words(agreed)}" if uneven else ""
        lines.append(f"agreement: {agreement_words(answer)}{weight}")
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
