"""Whether a text names what a question asks about: where it does not, it is no yes to it.

A reader finds "binds vitamin E" much like a yes to "Does it bind vitamin C?".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cluster.records import Entity
from cluster.text.analysis import analyse
from cluster.text.mine_abbreviations import mine_abbreviations
from serve.question.comparisons import subject_of
from serve.question.everyday_words import EVERYDAY_WORDS
from serve.support.compare_wording import holds, read_wording, stem

# Of names and passages more than these say little more, and their work has a bound.
MOST_NAMES = 30
MOST_CHARACTERS = 50_000
# Of what a thing is said to be ("an antibacterial drug") so much is named by a text about it.
KIND_NAMED = 0.5
MOST_PARTICLE = 3
LACKING_OF = 3
# A word as long as "pregnancy" is named by "pregnant" too.
LONG_WORD, ENDING = 8, 3

_IS_A_KIND = re.compile(
    r"^\W*(?:is|are|was|were)\b.{1,200}\s(?:an?|types? of|kinds? of)\s+"
    r"([\w-]+(?:\s[\w-]+){0,3})\s?\?",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
_POINTS_BACK = re.compile(r"\W*(?:it|its|they|their|this|these|both)\b", re.IGNORECASE)
# "Yes or no" asks for nothing.
_EITHER = re.compile(r"\bor\b(?! no\b)", re.IGNORECASE)
_BRACKETS = re.compile(r"\([^()]*\)")
_NO_WORD = re.compile(r"[^a-z0-9]")


@dataclass(frozen=True, slots=True)
class AskedConcepts:
    """What a question names: `concepts` with all names of each in stems, `symbols` that no
    concept has ("CD20"), the `kind` of thing that it asks for, "" for none, and the names of its
    `subject`, the word that its verb is followed by, none for an everyday one; `beside` is the next
    word, in stems. `either`: it asks for one thing or another.
    """

    concepts: tuple[tuple[str, ...], ...] = ()
    symbols: tuple[str, ...] = ()
    kind: str = ""
    subject: tuple[str, ...] = ()
    beside: str = ""
    either: bool = False

    def are_named(self, text: str) -> bool:
        """Whether the text has each of them, in any form of the words.

        Of three concepts it may lack one: who was studied stands elsewhere in the abstract. Of one
        thing or another half will do.
        """
        text = text[:MOST_CHARACTERS]
        plain = plain_stems(text)
        lacking = sum(not has_any(plain, names) for names in self.concepts)
        wording = read_wording(text)
        squeezed = _squeezed(text)
        said = sum(_squeezed(s) in squeezed or holds(wording, stem(s)) for s in self.symbols)
        unsaid = len(self.symbols) - said
        if self.either:
            return 2 * (lacking + unsaid) <= len(self.concepts) + len(self.symbols)
        if unsaid or lacking > len(self.concepts) // LACKING_OF:
            return False
        words = [word for word in _TOKEN.findall(self.kind) if len(word) > MOST_PARTICLE]
        # "A bacterium" is named by "bacteria".
        named = sum(_squeezed(word)[: max(4, len(word) - 2)] in squeezed for word in words)
        return named >= KIND_NAMED * len(words)

    def is_of_subject(self, sentence: str) -> bool:
        """Whether the sentence names the subject, or points back to what is said before it."""
        if not self.subject or _POINTS_BACK.match(sentence):
            return True
        word, *names = self.subject
        return _squeezed(word) in _squeezed(sentence) or has_any(plain_stems(sentence), names)

    def is_near_subject(self, sentence: str) -> bool:
        """Whether the sentence names the subject, a concept or the word beside the subject, the
        noun of an adjective: "denervation" of "Does renal denervation help?".
        """
        plain = plain_stems(sentence)
        beside = bool(self.beside) and self.beside in plain
        return (
            beside
            or self.is_of_subject(sentence)
            or any(has_any(plain, names) for names in self.concepts)
        )


NOTHING_ASKED = AskedConcepts()


def read_asked(body: str, entities: Iterable[Entity]) -> AskedConcepts:
    """What the question `body`, with these entities, names."""
    # What stands behind the question is no part of it.
    body = "".join(body.partition("?")[:2])
    linked = [entity for entity in entities if entity.concept and entity.begin < len(body)]
    forms = mine_abbreviations(body)
    concepts = [
        (*names_of(entity), *_other_forms(entity.text, forms), *_stump(entity.text))
        for entity in linked
    ]
    # What stands in brackets is said before them.
    known = [(e.begin, e.end) for e in linked] + [m.span() for m in _BRACKETS.finditer(body)]
    symbols = [
        part
        for found in _TOKEN.finditer(body)
        if not any(begin <= found.start() < end for begin, end in known)
        for part in _symbols(found[0])
    ]
    kind = _IS_A_KIND.match(body)
    subject: tuple[str, ...] = ()
    beside = ""
    if (word := subject_of(body)) and not _is_everyday(word):
        begin = body.index(word)
        named = (
            names for e, names in zip(linked, concepts, strict=True) if e.begin <= begin < e.end
        )
        subject = (word, plain_stems(word), *next(named, ()))
        after = map(plain_stems, _TOKEN.findall(body[begin + len(word) :]))
        beside = next((stems for stems in after if stems.strip()), "")
    return AskedConcepts(
        tuple(concepts),
        tuple(symbols),
        kind[1] if kind else "",
        subject,
        beside,
        either=bool(_EITHER.search(body)),
    )


def names_of(concept: Entity) -> list[str]:
    """The concept's words in the question and its synonyms, each as `plain_stems` has them."""
    # Stemmers leave the plural of "RNAs".
    one = [concept.text[:-1]] if concept.text.endswith("s") else []
    plain = map(plain_stems, [concept.text, *one, *concept.synonyms][:MOST_NAMES])
    return [name for name in plain if name.strip()]


def plain_stems(text: str) -> str:
    """The stems of a text's words, each between spaces, so that "bleeds" names bleeding."""
    return f" {' '.join(analyse(text[:MOST_CHARACTERS]))} "


def has_any(plain: str, names: Sequence[str]) -> bool:
    """Whether one of `names` stands in `plain`, both of `plain_stems`."""
    return any(name in plain for name in names)


def _is_everyday(word: str) -> bool:
    plain = word.casefold()
    return plain in EVERYDAY_WORDS or plain.removesuffix("s") in EVERYDAY_WORDS


def _stump(name: str) -> list[str]:
    word = name.casefold()
    return [f" {word[:-ENDING]}"] if len(word) >= LONG_WORD and word.isalpha() else []


def _other_forms(name: str, forms: Iterable[tuple[str, str]]) -> list[str]:
    """The short form in stems where `name` is the long one, and the long where it is the short."""
    same = plain_stems(name)
    return [
        plain_stems(other)
        for pair in forms
        for form, other in (pair, pair[::-1])
        if plain_stems(form) == same
    ]


def _symbols(token: str) -> list[str]:
    """The token, if it is a symbol: the whole of "IL-6" and "H2AX" of "g-H2AX"."""
    parts = [part for part in token.split("-") if _is_symbol(part)]
    coded = [part for part in parts if any(c.isdigit() for c in part)]
    return coded or ([token] if parts else [])


def _is_symbol(part: str) -> bool:
    letters = any(c.isalpha() for c in part)
    return letters and (any(c.isdigit() for c in part) or any(c.isupper() for c in part[1:]))


def _squeezed(text: str) -> str:
    return _NO_WORD.sub("", text.casefold())
