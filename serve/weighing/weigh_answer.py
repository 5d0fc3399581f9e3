"""Everything about a written answer by which a reader can weigh it."""

from __future__ import annotations

from dataclasses import replace

from cluster.answers import NOT_ENOUGH, Answer
from serve.weighing.cover_concepts import cover_concepts
from serve.weighing.list_sides import list_sides, measure_agreement
from serve.weighing.tell_caveats import tell_caveats


def weigh_answer(answer: Answer) -> Answer:
    """The answer with its caveats, sides, agreement and concepts, of evidence by relevance.

    Where nothing is stated there is nothing to weigh.
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
