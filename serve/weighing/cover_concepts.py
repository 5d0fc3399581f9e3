"""Which concepts of a question its cited evidence and its answer name (paper 001, section 7.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cluster.answers import Evidence, ExactAnswer, Sentence
from cluster.records import Entity
from cluster.weighing import ConceptCoverage
from serve.question.asked_concepts import has_any, names_of, plain_stems


def cover_concepts(
    entities: Iterable[Entity],
    ideal: Sequence[Sentence],
    exact: ExactAnswer,
    evidence: Iterable[Evidence],
) -> ConceptCoverage | None:
    """The shares of the question's linked concepts; None where it has none.

    A concept is named by its words in the question or by one of its synonyms, in any form of
    the words. The evidence counts as far as the answer cites it, with its titles.
    """
    named = {entity.concept: entity for entity in entities if entity.concept}
    if not named:
        return None
    cited = {pmid for sentence in ideal for pmid in sentence.pmids}
    sources = [i for i in evidence if i.passage.pmid in cited]
    listed = [name for group in exact for name in group] if isinstance(exact, list) else []
    told = plain_stems(" ; ".join([*(sentence.text for sentence in ideal), *listed]))
    read = plain_stems(" ; ".join(f"{item.title} ; {item.passage.text}" for item in sources))
    concepts = {concept.text: names_of(concept) for concept in named.values()}
    unread = tuple(text for text, names in concepts.items() if not has_any(read, names))
    untold = tuple(text for text, names in concepts.items() if not has_any(told, names))
    return ConceptCoverage(
        concepts=tuple(concepts),
        in_evidence=round(1 - len(unread) / len(concepts), 4),
        in_answer=round(1 - len(untold) / len(concepts), 4),
        missing_from_evidence=unread,
        missing_from_answer=untold,
    )
