"""Cluster the names that refer to the same concept.

Paper 001 (section 4.2) links mentions to concepts "to recognize when different snippets mention
the same underlying concept through synonyms or abbreviations". As in that paper, embeddings are
not compared, because those of interleukin 6 and interleukin 8 are almost equal.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import combinations

from cluster.records import Entity
from cluster.text.vocabulary import normalise

Recognise = Callable[[str], list[Entity]]

_GAP = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
_PIECE = re.compile(r"[^\W\d_]+|\d+")
_GREEK = "alpha|beta|gamma|delta|epsilon|zeta|theta|kappa|lambda|sigma|omega"
_GLUED = re.compile(rf"(.*?)({_GREEK})")
_ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9}

Parts = tuple[tuple[str, ...], tuple[str, ...]]


def cluster_names(
    names: Sequence[str], definitions: Iterable[tuple[str, str]], recognise: Recognise
) -> list[int]:
    """Return the number of each name's cluster; equal numbers mean the same concept.

    Joins names of one concept, spellings of one name, and a short form with its long forms, if
    all of its `definitions` (short, long) have the same concept. Names that differ only by a
    number or a Greek letter stay apart even if they are linked to one concept (MeSH has alpha- and
    beta-tubulin under Tubulin).
    """
    found = list(dict.fromkeys(names))
    concepts = [_concept(name, recognise) for name in found]
    spelt = [spelling(name) for name in found]
    clusters = _Clusters(found)
    for group in _grouped(concepts).values():
        clusters.join(group)
    for group in _grouped(spelt).values():
        known = {concepts[at] for at in group} - {""}
        clusters.join(group if len(known) <= 1 else [at for at in group if not concepts[at]])
    for group in _defined(definitions, spelt, clusters.numbers):
        clusters.join(group)
    numbers = dict(zip(found, clusters.numbers, strict=True))
    return [numbers[name] for name in names]


def _concept(name: str, recognise: Recognise) -> str:
    """Return the concept of `name`, or "" unless the recogniser finds the whole name."""
    return next((entity.concept for entity in recognise(name) if entity.text == name), "")


@lru_cache(maxsize=100_000)
def spelling(name: str) -> str:
    """Return a key that spellings of one name share: IL-6, IL 6 and il6, but not 1 2 and 12."""
    return _GAP.sub("", normalise(name).casefold())


@lru_cache(maxsize=100_000)
def _parts(name: str) -> Parts:
    """Return the sorted words of a name, and its sorted numbers and single letters."""
    words: list[str] = []
    marks: list[str] = []
    for piece in _PIECE.findall(normalise(name).casefold()):
        greek = _GLUED.fullmatch(piece)
        if piece in _ROMAN or piece.isdigit():
            marks.append(str(_ROMAN.get(piece) or piece))
        elif greek:
            words += filter(None, [greek[1]])
            marks.append(greek[2])
        else:
            (marks if len(piece) == 1 else words).append(piece)
    return tuple(sorted(words)), tuple(sorted(marks))


def _counted(name: str) -> list[str]:
    """Return the numbers and Greek letters of a name."""
    return [mark for mark in _parts(name)[1] if mark.isdigit() or _GLUED.fullmatch(mark)]


class _Clusters:
    """Clusters of names; at first, each name is a cluster."""

    def __init__(self, names: Sequence[str]) -> None:
        self.numbers = list(range(len(names)))
        self._marks = [{words: marks} for words, marks in map(_parts, names)]

    def join(self, group: Sequence[int]) -> None:
        """Join the clusters of a group, unless equal words have different numbers or letters."""
        for place, other_place in combinations(group, 2):
            one, other = self.numbers[place], self.numbers[other_place]
            marks, others = self._marks[one], self._marks[other]
            if one != other and all(others.get(w, of) == of for w, of in marks.items()):
                self.numbers = [one if number == other else number for number in self.numbers]
                marks.update(others)


def _grouped(keys: Sequence[str]) -> dict[str, list[int]]:
    """Return the positions of each key in `keys`; empty keys are ignored."""
    groups: dict[str, list[int]] = defaultdict(list)
    for at, key in enumerate(keys):
        if key:
            groups[key].append(at)
    return groups


def _defined(
    definitions: Iterable[tuple[str, str]], spelt: Sequence[str], cluster: Sequence[int]
) -> list[list[int]]:
    """Return groups: a short form and its long forms, if all share one cluster and one number."""
    longs: dict[str, dict[str, bool]] = defaultdict(dict)
    for short, long in definitions:
        longs[spelling(short)][spelling(long)] = _counted(short) == _counted(long)
    places = _grouped(spelt)
    groups = []
    for short, found in longs.items():
        meant = [place for long in found for place in places.get(long, ())]
        is_one = len({cluster[at] for at in meant}) == 1 and found.keys() <= places.keys()
        if is_one and all(found.values()):
            groups.append([*meant, *places.get(short, ())])
    return groups
