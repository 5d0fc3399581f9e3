"""Add caveats, sides, agreement and concept coverage to a written answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cluster.answers import NOT_ENOUGH, Answer, Evidence, Sentence
from cluster.study_design.designs import weight_of
from cluster.weighing import Agreement, Sides, SideSource
from serve.answer.tell_verdict import shortened
from serve.weighing.cover_concepts import cover_concepts
from serve.weighing.tell_caveats import tell_caveats


def weigh_answer(answer: Answer) -> Answer:
    """Return the answer with caveats, sides, agreement and concept coverage.

    The evidence must be ordered by relevance. An answer that states nothing is unchanged.
    """
    if answer.verdict == NOT_ENOUGH:
        return answer
    sides = list_sides(answer.evidence, answer.ideal)
    return replace(
        answer,
        caveats=tell_caveats(answer.ideal, answer.evidence),
        sides=sides,
        agreement=measure_agreement(sides),
        concept_coverage=cover_concepts(
            answer.entities, answer.ideal, answer.exact, answer.evidence
        ),
    )


def list_sides(evidence: Iterable[Evidence], ideal: Sequence[Sentence]) -> Sides:
    """Return each citation with a stance once, with its best-ranked passage that has a stance.

    `evidence` is ordered by relevance. `ideal` has the sentences of the stated answer.
    """
    first: dict[int, Evidence] = {}
    for item in evidence:
        if item.stance in ("support", "contradict"):
            first.setdefault(item.passage.pmid, item)
    supporting, contradicting = (
        tuple(_source(item, ideal) for item in first.values() if item.stance == stance)
        for stance in ("support", "contradict")
    )
    return Sides(supporting, contradicting)


def _source(item: Evidence, ideal: Sequence[Sentence]) -> SideSource:
    return SideSource(
        pmid=item.passage.pmid,
        quote=shortened(item.passage.text),
        sentence=_sentence(item, ideal),
        title=item.title,
        year=item.year,
        design=item.design,
        subjects=item.subjects,
        notice=item.notice,
    )


def _sentence(item: Evidence, ideal: Sequence[Sentence]) -> str:
    """Return the first sentence that cites the source on its side, else the first sentence."""
    pmid, supports = item.passage.pmid, item.stance == "support"
    named = (s.text for s in ideal if pmid in (s.pmids if supports else s.contradicted))
    return next(named, ideal[0].text if ideal else "")


def measure_agreement(sides: Sides) -> Agreement | None:
    """Return the sources' agreement with the answer; None if no source takes a stance."""
    sources = [*sides.supporting, *sides.contradicting]
    if not sources:
        return None
    weight = sum(weight_of(source.design) for source in sources)
    supporting = sum(weight_of(source.design) for source in sides.supporting)
    return Agreement(
        sources=len(sources),
        supporting=len(sides.supporting),
        share=round(len(sides.supporting) / len(sources), 4),
        weighted=round(supporting / weight, 4),
    )
