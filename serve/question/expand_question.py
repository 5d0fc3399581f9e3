"""Find the entities of a question, and synonyms for query expansion.

A recogniser is any object with `entities(text) -> list[Entity]`, which returns spans in code points
of `text`, in order and without overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from cluster.errors import InputError
from cluster.records import Entity
from cluster.text.vocabulary import Concept, Vocabulary, normalise
from serve.question.everyday_words import EVERYDAY_WORDS

MAX_NAME_WORDS = 8

_WORD = re.compile(r"\w+(?:['\u2019]s\b)?")
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)


class Recogniser(Protocol):
    """Finds names of biomedical concepts in a text."""

    def entities(self, text: str) -> list[Entity]:
        """Return the entities in order of their spans, which do not overlap."""
        ...


class VocabularyRecogniser:
    """Finds names of the vocabulary by longest match, from left to right."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def entities(self, text: str) -> list[Entity]:
        """Return the entities in order of their spans, without everyday and question words.

        If several concepts have the same name, the most common one is used.
        """
        words = [match.span() for match in _WORD.finditer(text)]
        found: list[Entity] = []
        for first, (begin, _) in enumerate(words):
            if found and begin < found[-1].end:
                continue
            ends = (end for _, end in reversed(words[first : first + MAX_NAME_WORDS]))
            entities = (self._entity(text, begin, end) for end in ends)
            if entity := next(filter(None, entities), None):
                found.append(entity)
        return found

    def _entity(self, text: str, begin: int, end: int) -> Entity | None:
        key = normalise(text[begin:end])
        if len(key) < 2 or _is_everyday(key) or not any(c.isalpha() for c in key):
            return None
        concepts = self._vocabulary.lookup(text[begin:end])
        if not concepts:
            return None
        meant = concepts[0]
        return Entity(
            text=text[begin:end],
            begin=begin,
            end=end,
            concept=meant.id,
            kind=meant.kind,
            synonyms=_other_names(meant, key),
        )


def expansion_terms(
    question: str, entities: Iterable[Entity], *, max_per_entity: int = 3, max_terms: int = 12
) -> list[str]:
    """Return synonyms of a question's entities to add to its BM25 query, in entity order.

    Synonyms are skipped if all their words are in the question or in an earlier synonym, or if all
    of them are everyday words in lower case, as for the abbreviation "ALL".
    """
    said = _words(question)
    terms: list[str] = []
    for entity in entities:
        before = len(terms)
        for synonym in entity.synonyms:
            if len(terms) < before + max_per_entity and not _adds_nothing(synonym, said):
                terms.append(synonym)
                said |= _words(synonym)
    return terms[:max_terms]


def variants_of(question: str, entities: Iterable[Entity], most: int) -> list[str]:
    """Return up to `most` variants of the question, each with one entity replaced by a synonym.

    Each variant uses the entity's first synonym. Synonyms are skipped as in `expansion_terms`.
    """
    said = _words(question)
    found: list[str] = []
    for entity in entities:
        names = (name for name in entity.synonyms if not _adds_nothing(name, said))
        name = next(names, None)
        if name is not None and len(found) < most:
            found.append(f"{question[: entity.begin]}{name}{question[entity.end :]}")
    return found


def _adds_nothing(name: str, said: set[str]) -> bool:
    words = _words(name)
    return words <= said or words <= EVERYDAY_WORDS


def _other_names(concept: Concept, key: str) -> tuple[str, ...]:
    """Return the concept's names, except the one whose normal form is `key`."""
    return tuple(name for name in concept.names if normalise(name) != key)


def _is_everyday(key: str) -> bool:
    return key in EVERYDAY_WORDS or (len(key) > 3 and normalise(key.lower()) in EVERYDAY_WORDS)


def _words(text: str) -> set[str]:
    return {normalise(match[0].lower()) for match in _WORD.finditer(text)}


class TransformerRecogniser:
    """Hugging Face token classifier with a fast tokeniser, loaded from `model_dir`.

    `labels` are the entity types to return, without the prefixes B- and I-; () means all. Raises
    InputError if the model lacks one of them.
    """

    def __init__(
        self,
        model_dir: Path,
        labels: Sequence[str] = (),
        device: str = "cpu",
        dtype: str = "float32",
    ) -> None:
        # Imported here because a service that only uses the vocabulary does not need torch.
        from cluster.models.hardware import choose_device
        from cluster.models.tag_entities import EntityTagger

        self._tagger = EntityTagger.load(model_dir, choose_device(device), dtype)
        known = self._tagger.kinds
        if unknown := sorted(set(labels) - known):
            raise InputError(
                f"{model_dir}: no entity label {', '.join(unknown)}; "
                f"choose from {', '.join(sorted(known))}"
            )
        self._labels = frozenset(labels) or known

    def entities(self, text: str) -> list[Entity]:
        """Return the entities in order of their spans, without concepts and synonyms."""
        return [e for e in self._tagger.entities(text) if e.kind in self._labels]


class LinkedRecogniser:
    """Links the entities of `recogniser` to concepts of `vocabulary` (paper 001, section 4.2).

    A mention keeps its span, kind and score. It gets the identifier and synonyms of the most common
    concept with its name, ignoring a leading article. Mentions without a concept are unchanged.
    """

    def __init__(self, recogniser: Recogniser, vocabulary: Vocabulary) -> None:
        self.recogniser = recogniser
        self._vocabulary = vocabulary

    def entities(self, text: str) -> list[Entity]:
        """Return the entities, linked to concepts where the vocabulary has the name."""
        return [self._linked(entity) for entity in self.recogniser.entities(text)]

    def _linked(self, entity: Entity) -> Entity:
        for name in dict.fromkeys((entity.text, _ARTICLE.sub("", entity.text))):
            if concepts := self._vocabulary.lookup(name):
                names = _other_names(concepts[0], normalise(name))
                return replace(entity, concept=concepts[0].id, synonyms=names)
        return entity
