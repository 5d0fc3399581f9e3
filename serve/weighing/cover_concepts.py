"""Measure which concepts of a question the evidence and the answer name (paper 001, 7.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cluster.answers import Evidence, ExactAnswer, Sentence
from cluster.records import Entity
from cluster.text.analysis import analyse
from cluster.weighing import ConceptCoverage

# Limits on the names and characters that are compared, which bound the work.
MOST_NAMES = 30
MOST_CHARACTERS = 50_000


def cover_concepts(
    entities: Iterable[Entity],
    ideal: Sequence[Sentence],
    exact: ExactAnswer,
    evidence: Iterable[Evidence],
) -> ConceptCoverage | None:
    """Return the shares of the question's linked concepts that are named; None if it has none.

    A concept is named by its words in the question or by a synonym, in any inflection. Only cited
    evidence counts, including its titles.
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


def names_of(concept: Entity) -> list[str]:
    """Return the concept's words in the question and its synonyms as `plain_stems`."""
    # The stemmer does not remove the plural ending of "RNAs".
    one = [concept.text[:-1]] if concept.text.endswith("s") else []
    plain = map(plain_stems, [concept.text, *one, *concept.synonyms][:MOST_NAMES])
    return [name for name in plain if name.strip()]


def plain_stems(text: str) -> str:
    """Return the stems of a text's words, separated and surrounded by spaces."""
    return f" {' '.join(analyse(text[:MOST_CHARACTERS]))} "


def has_any(plain: str, names: Sequence[str]) -> bool:
    """Return True if one of `names` occurs in `plain`; both are outputs of `plain_stems`."""
    return any(name in plain for name in names)
