"""Find the concept blocks of a question: its entities, and the content words beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cluster.index.boolean.expressions import LEAST_STEM, Term
from cluster.records import Citation, Entity
from cluster.text.analysis import Analyser
from cluster.text.vocabulary import Concept, normalise
from serve.question.everyday_words import EVERYDAY_WORDS

# Names of a concept that are tried, the most used first.
MOST_NAMES = 30
# Words and hyphenated words, without the s of a possessive.
_WORD = re.compile(r"(?<![\w'\u2019])\w+(?:-\w+)*")
# Year of the oldest articles of PubMed, roughly.
_FIRST_YEAR = 1780
_NOT_IN_TERM = re.compile(r'["\[\]*]')


@dataclass(frozen=True, slots=True)
class Concepts:
    """A block before its terms are chosen: its name in the question, and candidate terms.

    The terms from the index `words` on are single words of a name. `heading_hits` is the number of
    citations with the heading, if one is among the terms.
    """

    name: str
    terms: tuple[Term, ...]
    words: int = 0
    heading_hits: int = 0


def concept_blocks(
    question: str, named: Iterable[tuple[Entity, Concept | None]], analyser: Analyser
) -> list[Concepts]:
    """Return the blocks of `question` in order, each concept once.

    `named` are the entities with their concepts. Everyday words only form blocks if the question
    has no other content words, and years form none.
    """
    found: dict[str, Concepts] = {}
    spans = []
    for entity, concept in named:
        spans.append((entity.begin, entity.end))
        block = _of_entity(entity, concept, analyser)
        if block.terms:
            found.setdefault(entity.concept or normalise(entity.text), block)
    words = [
        match[0]
        for match in _WORD.finditer(question)
        if not any(begin < match.end() and match.start() < end for begin, end in spans)
        and not _is_years(match[0])
    ]
    telling = [word for word in words if normalise(word.lower()) not in EVERYDAY_WORDS]
    for word in telling or ([] if found else words):
        if terms := tuple(_word_terms(word, analyser)):
            found.setdefault(" ".join(analyser.terms(word)), Concepts(word, terms))
    return list(found.values())


def years_in(question: str) -> list[str]:
    """Return the years in `question`, and ranges of years such as "2015-2020"."""
    return list(dict.fromkeys(filter(_is_years, _WORD.findall(question))))


def _is_years(word: str) -> bool:
    parts, last = word.split("-"), datetime.now(UTC).year
    return all(p.isdecimal() and len(p) == 4 and _FIRST_YEAR <= int(p) <= last for p in parts)


def _of_entity(entity: Entity, concept: Concept | None, analyser: Analyser) -> Concepts:
    """Return the heading, the names of the concept, and the words of its name in the question."""
    terms: dict[str, Term] = {}
    heading = concept if concept and concept.id.startswith("mesh:D") else None
    if heading:
        terms["heading"] = Term("mh", heading.name)
    # Texts have "strokes, cardiovascular" by chance only; the vocabulary adds headings in natural
    # order.
    names = [n for n in (concept.names if concept else entity.synonyms) if ", " not in n]
    for name in (entity.text, *names[:MOST_NAMES]):
        value = " ".join(_NOT_IN_TERM.sub(" ", name).split())
        if analyser.terms(value):
            terms.setdefault(analyser.words(value), Term("tiab", value))
    count = len(terms)
    for word in _WORD.findall(entity.text):
        if normalise(word.lower()) not in EVERYDAY_WORDS:
            for term in _word_terms(word, analyser):
                terms.setdefault(analyser.words(term.value) + term.value[-1:], term)
    hits = heading.citations if heading else 0
    return Concepts(entity.text, tuple(terms.values()), count, hits)


def _word_terms(word: str, analyser: Analyser) -> list[Term]:
    """Return the word, and the word truncated to its stem if that is long enough."""
    stems = analyser.terms(word)
    if not stems:
        return []
    terms = [Term("tiab", word)]
    written = analyser.words(word)
    # The stemmer may change the last letter: "therapies" becomes "therapi".
    stem = stems[0] if written.startswith(stems[0]) else stems[0][:-1]
    if len(stems) == 1 and LEAST_STEM <= len(stem) < len(written) and written.startswith(stem):
        terms.append(Term("tiab", f"{stem}*"))
    return terms


class ReferenceSet:
    """The citations of the semantic search, with weights, and the terms that they contain."""

    def __init__(
        self, citations: Sequence[Citation], weights: Sequence[float], analyser: Analyser
    ) -> None:
        self.pmids = tuple(citation.pmid for citation in citations)
        self._weights = weights
        self._analyser = analyser
        self._texts = [_words_of(citation, analyser) for citation in citations]
        self._headings = [{h.name.casefold() for h in c.mesh} for c in citations]

    def found_by(self, term: Term) -> frozenset[int]:
        """Return the positions of the citations that match a term of `mh` or `tiab`."""
        if term.field == "mh":
            name = term.value.casefold()
            return frozenset(n for n, held in enumerate(self._headings) if name in held)
        end = "" if term.value.endswith("*") else " "
        needle = f" {self._analyser.words(term.value)}{end}"
        texts = enumerate(self._texts)
        return frozenset(n for n, own in texts if any(needle in text for text in own))

    def share(self, places: Iterable[int]) -> float:
        """Return the share of the total weight that citations at these positions have, 0 to 1."""
        return sum(self._weights[position] for position in places) / (sum(self._weights) or 1.0)


def _words_of(citation: Citation, analyser: Analyser) -> tuple[str, str]:
    title = citation.title if citation.has_title else ""
    return f" {analyser.words(title)} ", f" {analyser.words(citation.abstract)} "
