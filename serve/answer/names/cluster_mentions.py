"""Cluster the mentions in the evidence that refer to the same concept.

Paper 001 (section 4.2) links mentions to concepts "to recognize when different snippets mention
the same underlying concept through synonyms or abbreviations". As in that paper, embeddings are
not compared, because those of interleukin 6 and interleukin 8 are almost equal.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations

from cluster.records import Entity
from cluster.text.vocabulary import normalise

# Shorter synonyms are too ambiguous.
MIN_SYNONYM_CHARS = 3

_GAP = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
_PIECE = re.compile(r"[^\W\d_]+|\d+")
_GREEK = "alpha|beta|gamma|delta|epsilon|zeta|theta|kappa|lambda|sigma|omega"
_GLUED = re.compile(rf"(.*?)({_GREEK})")
_ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9}
# Words that distinguish similar concepts, as numbers and Greek letters do.
_QUALIFIERS = """
acquired active acute adult anterior anti autosomal benign bilateral chronic congenital distal
dominant early familial fetal gestational hereditary heterozygous high homozygous hyper hypo
inactive infantile inferior inherited juvenile large late lateral left like long low lower major
malignant maternal medial metastatic mild minor moderate neonatal negative non paternal
pediatric positive posterior pre post primary proximal pseudo recessive recombinant refractory
relapsed right secondary severe short small soluble sporadic subacute superior systemic tertiary
type unilateral upper
"""


def cluster_mentions(
    entities: Sequence[Entity],
    definitions: Iterable[tuple[str, str]] = (),
    listed: Iterable[Sequence[str]] = (),
) -> list[int]:
    """Return the number of each entity's cluster; equal numbers mean the same concept.

    These are joined: mentions of one concept; spellings of one name; a name in no vocabulary and
    the only mentioned concept that has it as a synonym; and a short form with its long forms, if
    all its `definitions` (short, long) give the same concept. Names that differ only by a number,
    a Greek letter or a qualifier stay apart even if they are linked to one concept (MeSH has alpha-
    and beta-tubulin under Tubulin), and so do names `listed` side by side ("Rotarix and RotaTeq").
    """
    mentions = list(dict.fromkeys((entity.text, entity.concept) for entity in entities))
    clusters = _Clusters(mentions, listed)
    clusters.join(_grouped((concept, at) for at, (_, concept) in enumerate(mentions)))
    clusters.join(_grouped((spelling(text), at) for at, (text, _) in enumerate(mentions)))
    clusters.join(_by_synonym(entities, mentions))
    clusters.join(_by_definition(definitions, mentions, clusters.numbers), defined=True)
    number = dict(zip(mentions, clusters.numbers, strict=True))
    return [number[entity.text, entity.concept] for entity in entities]


@lru_cache(maxsize=100_000)
def spelling(name: str) -> str:
    """Return a key that spellings of one name share: IL-6, IL 6 and il6, but not 1 2 and 12."""
    return _GAP.sub("", normalise(name).casefold())


@cache
def _qualifiers() -> frozenset[str]:
    return frozenset(_QUALIFIERS.split())


@dataclass(frozen=True, slots=True)
class _Parts:
    """The words of a name, and the numbers, letters and qualifiers in it, each sorted."""

    words: tuple[str, ...]
    marks: tuple[str, ...]


@lru_cache(maxsize=100_000)
def _parts(name: str) -> _Parts:
    words: list[str] = []
    marks: list[str] = []
    for piece in _PIECE.findall(normalise(name).casefold()):
        greek = _GLUED.fullmatch(piece)
        if piece in _ROMAN or piece.isdigit():
            marks.append(str(_ROMAN.get(piece) or piece))
        elif greek:
            words += filter(None, [greek[1]])
            marks.append(greek[2])
        elif len(piece) == 1 or piece in _qualifiers():
            marks.append(piece)
        else:
            words.append(piece)
    return _Parts(tuple(sorted(words)), tuple(sorted(marks)))


def _counted(name: str) -> list[str]:
    """Return the numbers and Greek letters of a name."""
    return [mark for mark in _parts(name).marks if mark.isdigit() or _GLUED.fullmatch(mark)]


class _Clusters:
    """Clusters of mentions (text, concept or ""), which start with one mention each."""

    def __init__(
        self, mentions: Sequence[tuple[str, str]], listed: Iterable[Sequence[str]]
    ) -> None:
        self._concept = [concept for _, concept in mentions]
        self._members = {at: [at] for at in range(len(mentions))}
        self.numbers = list(range(len(mentions)))
        parts = [_parts(text) for text, _ in mentions]
        self._marks = [{part.words: part.marks} for part in parts]
        self._spelt = [{spelling(text)} for text, _ in mentions]
        self._listed = [frozenset(map(spelling, names)) for names in listed]

    def join(self, groups: Mapping[str, Sequence[int]], *, defined: bool = False) -> None:
        """Join the mentions of each group; different concepts only if the text `defined` them."""
        for group in groups.values():
            concepts = {self._concept[at] for at in group} - {""}
            if len(concepts) > 1 and not defined:
                group = [at for at in group if not self._concept[at]]
            for one, other in combinations(group, 2):
                self._join(self.numbers[one], self.numbers[other])

    def _join(self, one: int, other: int) -> None:
        marks, others = self._marks[one], self._marks[other]
        if one == other or any(others.get(words, of) != of for words, of in marks.items()):
            return
        if self._is_listed(self._spelt[one], self._spelt[other]):
            return
        for at in self._members[other]:
            self.numbers[at] = one
        self._members[one] += self._members.pop(other)
        marks.update(others)
        self._spelt[one] |= self._spelt[other]

    def _is_listed(self, one: set[str], other: set[str]) -> bool:
        """Return whether a list has a name of each cluster, and they share no name."""
        return any(names & one and names & other for names in self._listed if not one & other)


def _grouped(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for key, at in pairs:
        if key:
            groups[key].append(at)
    return groups


def _by_synonym(
    entities: Sequence[Entity], mentions: Sequence[tuple[str, str]]
) -> dict[str, list[int]]:
    """Return names in no vocabulary, each with a mention of each concept that it may mean."""
    places = list(enumerate(mentions))
    unknown = _grouped((spelling(text), at) for at, (text, concept) in places if not concept)
    named = {concept: at for at, (_, concept) in reversed(places)}
    known = {entity.concept: entity.synonyms for entity in entities if entity.concept}
    for concept, synonyms in known.items():
        for key in {spelling(name) for name in synonyms} & unknown.keys():
            if len(key) >= MIN_SYNONYM_CHARS:
                unknown[key].append(named[concept])
    return unknown


def _by_definition(
    definitions: Iterable[tuple[str, str]],
    mentions: Sequence[tuple[str, str]],
    cluster: Sequence[int],
) -> dict[str, list[int]]:
    """Return short forms with long forms that share one `cluster` and the short form's numbers."""
    longs: dict[str, dict[str, bool]] = defaultdict(dict)
    for short, long in definitions:
        longs[spelling(short)][spelling(long)] = _counted(short) == _counted(long)
    places = _grouped((spelling(text), at) for at, (text, _) in enumerate(mentions))
    groups = {}
    for short, found in longs.items():
        meant = [place for long in found for place in places.get(long, ())]
        is_one = len({cluster[at] for at in meant}) == 1 and found.keys() <= places.keys()
        if is_one and all(found.values()):
            groups[short] = [*meant, *places.get(short, ())]
    return groups
