"""Look up entities, term statistics, headings, corrections and completions in an index version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

from cluster.index.filters.inspect_filters import closest_values
from cluster.index.terms.collection import CollectionTerms, Statistics
from cluster.records import Entity
from cluster.text.analysis import ANALYSER, Analyser
from cluster.text.vocabulary import Concept, ConceptKind, Vocabulary, normalise
from serve.contracts.stage_calls import stage_method
from serve.question.correct_spelling import RARE_SHARE, Speller, correctable
from serve.question.expand_question import Recogniser, expansion_terms

OVER = "citations"
# A word is common if at least this number and this share of the citations contain it.
COMMON, COMMON_SHARE = 5, 1e-5
_HEADING = "mesh:D"
# Number of names that are ranked for a completion.
_RANKED = 100


@dataclass(frozen=True, slots=True)
class Understood:
    """Entities of a question, and BM25 statistics of its terms and of their synonyms."""

    entities: tuple[Entity, ...]
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Completion of a typed prefix.

    `name` begins with the prefix. `concept` is the concept's preferred name. `citations` is the
    number of citations about it; 0 if only the words of the name occur. `heading` is the UI of a
    MeSH descriptor, such as "D008687"; "" for other names.
    """

    name: str
    concept: str
    kind: ConceptKind
    citations: int
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """MeSH descriptor: its UI, such as "D008687", and its name."""

    ui: str
    name: str


class Expander:
    """Looks up terms in the vocabulary and term counts of one index version; thread-safe."""

    def __init__(
        self,
        recogniser: Recogniser,
        collection: CollectionTerms,
        vocabulary: Vocabulary | None = None,
        analyser: Analyser = ANALYSER,
    ) -> None:
        self.recogniser = recogniser
        self._collection = collection
        self._vocabulary = vocabulary
        self._analyser = analyser
        self._lock = Lock()

    def understand(self, text: str, over: str, named: bool) -> Understood:
        """Return term statistics `over` "citations" or "passages"; entities only if `named`."""
        entities = self.recogniser.entities(text) if named else []
        terms = self._analyser.terms(" ".join([text, *expansion_terms(text, entities)]))
        return Understood(tuple(entities), self.statistics(terms, over))

    def entities(self, text: str) -> list[Entity]:
        """Return the entities in order of their spans, which do not overlap."""
        return self.recogniser.entities(text)

    def statistics(self, terms: Sequence[str], over: str) -> Statistics:
        """Return the BM25 statistics of the distinct terms `over` "citations" or "passages"."""
        return self._collection.statistics(dict.fromkeys(terms), over)

    def headings(self, names: Sequence[str]) -> dict[str, Heading]:
        """Return the heading of each of `names` that is a MeSH heading or an entry term of one."""
        found = {}
        for name in names:
            for concept in self._vocabulary.lookup(name) if self._vocabulary else ():
                if concept.id.startswith(_HEADING):
                    found[name] = Heading(concept.id.removeprefix("mesh:"), concept.name)
                    break
        return found

    def closest_headings(self, name: str) -> tuple[str, ...]:
        """Return the MeSH headings of the index whose names are closest to `name`, best first."""
        known = self._vocabulary.names_of(_HEADING) if self._vocabulary else []
        by_key = {heading.casefold(): heading for heading in known}
        return tuple(by_key[key] for key in closest_values(name.casefold(), by_key))

    def concepts(self, text: str) -> list[tuple[Entity, Concept | None]]:
        """Return the entities of `text` in order, each with its concept if it has one."""
        found = []
        for entity in self.recogniser.entities(text):
            known = self._vocabulary.lookup(entity.text) if self._vocabulary else []
            same = (concept for concept in known if concept.id == entity.concept)
            found.append((entity, next(same, None)))
        return found

    def did_you_mean(self, body: str) -> str | None:
        """Return the question with misspelt words corrected, or None if none are found.

        The first call with a word that is not in the index loads all terms.
        """
        units = self._collection.statistics([], OVER).units
        if all(self._frequency(stem) > units * RARE_SHARE for stem in correctable(body)):
            return None
        return self._speller.correct(body)

    def suggest(self, prefix: str, limit: int, headings: bool = False) -> list[Suggestion]:
        """Return up to `limit` vocabulary names that begin with `prefix`, one per concept.

        With `headings`, return only names of MeSH descriptors.
        Names in the most citations come first. Names whose words are not in the index are skipped.
        """
        if self._vocabulary is None:
            return []
        keys = dict.fromkeys((normalise(prefix), normalise(prefix.lower())))
        rows = [row for key in keys if key for row in self._vocabulary.beginning(key, _RANKED)]
        ranked = sorted(
            (-held, len(key), key, row)
            for key, row in rows
            if (held := min(map(self._frequency, self._analyser.terms(key)), default=0))
        )
        found: dict[str, Suggestion] = {}
        for _, _, key, row in ranked:
            concept = self._vocabulary.concept_at(row)
            if not headings or concept.id.startswith(_HEADING):
                found.setdefault(concept.id, _suggestion(concept, key))
        return sorted(found.values(), key=lambda s: -s.citations)[:limit]

    def _frequency(self, term: str) -> int:
        return self._collection.statistics([term], OVER).frequencies[term]

    @cached_property
    def _speller(self) -> Speller:
        with self._lock:
            units = self._collection.statistics([], OVER).units
            least = max(COMMON, int(units * COMMON_SHARE))
            terms, counts = self._collection.frequent(least, OVER)
            words = self._vocabulary.words() if self._vocabulary else []
            return Speller(terms, counts, words, self._frequency, units)


UNDERSTAND = stage_method("expander", Expander.understand, "expand", "question not expanded")
ENTITIES = stage_method("expander", Expander.entities, "expand", "question not expanded")
STATISTICS = stage_method(
    "expander", Expander.statistics, "statistics", "terms weighed by each shard's own counts"
)
HEADINGS = stage_method("expander", Expander.headings, "headings")
CLOSEST_HEADINGS = stage_method("expander", Expander.closest_headings, "headings")
CONCEPTS = stage_method("expander", Expander.concepts, "concepts")
DID_YOU_MEAN = stage_method("expander", Expander.did_you_mean, "spell", spare=True)
SUGGEST = stage_method("expander", Expander.suggest, "suggest")


def _suggestion(concept: Concept, key: str) -> Suggestion:
    name = next((name for name in concept.names if normalise(name) == key), concept.name)
    heading = concept.id.removeprefix("mesh:") if concept.id.startswith(_HEADING) else ""
    return Suggestion(name, concept.name, concept.kind, concept.citations, heading)
