"""Entities and term statistics of a question, in one call to one stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.index.terms.collection import CollectionTerms, Statistics
from cluster.records import Entity
from cluster.text.analysis import analyse
from cluster.text.vocabulary import Vocabulary
from serve.question.expand_question import Recogniser, expansion_terms
from serve.question.words.index_words import IndexWords


@dataclass(frozen=True, slots=True)
class Understood:
    """Entities of a question, and BM25 statistics of its terms and of their synonyms."""

    entities: tuple[Entity, ...]
    statistics: Statistics


class Expander(IndexWords):
    """Finds entities with a version's vocabulary, and looks up its term statistics."""

    def __init__(
        self,
        recogniser: Recogniser,
        collection: CollectionTerms,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        super().__init__(collection, vocabulary)
        self.recogniser = recogniser

    def understand(self, text: str, over: str, named: bool) -> Understood:
        """Return term statistics `over` "citations" or "passages"; entities only if `named`."""
        entities = self.recogniser.entities(text) if named else []
        terms = analyse(" ".join([text, *expansion_terms(text, entities)]))
        return Understood(tuple(entities), self.statistics(terms, over))

    def entities(self, text: str) -> list[Entity]:
        """See `Recogniser.entities`."""
        return self.recogniser.entities(text)

    def statistics(self, terms: Sequence[str], over: str) -> Statistics:
        """See `CollectionTerms.statistics`; duplicate terms are removed."""
        return self._collection.statistics(dict.fromkeys(terms), over)
