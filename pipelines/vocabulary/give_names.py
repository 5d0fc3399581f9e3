"""The names that a release gives its concepts, and those that lexicons add to them.

A lexicon's group belongs to the concept that bears one of its names as its own: identifiers of
lexicons are not used, since most are wrong (of the two packages that laptop.yaml names, 49% and
3% of MeSH's are right).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from cluster.text.read_lexicon import read_lexicon
from cluster.text.vocabulary import normalise
from pipelines.vocabulary.name_headings import GivenName, natural_order
from pipelines.vocabulary.read_concepts import read_concepts

# Lexicons write all names small, where short ones stand for too many things.
SHORTEST = 4


class NameFiles(NamedTuple):
    """A release of concepts and lexicons, by their paths on this machine."""

    release: Path | None
    lexicons: tuple[Path, ...] = ()


NO_NAMES = NameFiles(None)


def given_names(files: NameFiles, umls_types: Collection[str] = ()) -> Iterator[GivenName]:
    """The release's names (`read_concepts`), then the lexicons' for the same concepts."""
    if files.release is not None:
        groups = [group for path in files.lexicons for group in read_lexicon(path)]
        yield from with_lexicons(read_concepts(files.release, umls_types), groups)


def with_lexicons(
    given: Iterable[GivenName], groups: Iterable[Collection[str]]
) -> Iterator[GivenName]:
    """`given`, then the names of each group that holds the own name of exactly one concept.

    Memory is that of the groups. A name of the release stays its concept's whatever a lexicon
    says: `name_headings.SOURCES` ranks own names first.
    """
    names = [tuple(name for name in group if len(name) >= SHORTEST) for group in groups]
    group_of: dict[str, set[int]] = {}
    for number, group in enumerate(names):
        for name in group:
            group_of.setdefault(normalise(name.lower()), set()).add(number)
    concepts: dict[int, set[str]] = {}
    for own in given:
        yield own
        if own.is_own:
            for form in {own.name, natural_order(own.name)}:
                for number in group_of.get(normalise(form.lower()), ()):
                    concepts.setdefault(number, set()).add(own.concept)
    for number, (concept, *others) in sorted(concepts.items()):
        if not others:
            yield from (GivenName(concept, name, False) for name in names[number])
