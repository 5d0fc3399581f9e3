"""Add caveats, sides, agreement and concept coverage to a written answer."""

from __future__ import annotations

from dataclasses import replace

from cluster.answers import NOT_ENOUGH, Answer
from serve.weighing.cover_concepts import cover_concepts
from serve.weighing.list_sides import list_sides, measure_agreement
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
        caveats=tell_caveats(answer.question.body, answer.ideal, answer.evidence),
        sides=sides,
        agreement=measure_agreement(sides),
        concept_coverage=cover_concepts(
            answer.entities, answer.ideal, answer.exact, answer.evidence
        ),
    )
