"""Read the names of concepts in a release, and the names that lexicons add to them.

A group of names in a lexicon belongs to the concept whose preferred name is in the group. The
identifiers in lexicons are not used, because most of them are wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from cluster.models.store import ModelStore
from cluster.settings.stages.expander import VocabularySettings
from cluster.text.read_lexicon import read_lexicon
from cluster.text.vocabulary import normalise
from pipelines.vocabulary.name_headings import GivenName, natural_order
from pipelines.vocabulary.read_concepts import read_concepts

# Lexicons write all names in lower case, which makes shorter names too ambiguous.
SHORTEST = 4


class NameFiles(NamedTuple):
    """Local paths of a release of concepts and of lexicons."""

    release: Path | None
    lexicons: tuple[Path, ...] = ()


NO_NAMES = NameFiles(None)


def find_names(chosen: VocabularySettings, store: ModelStore | None = None) -> NameFiles:
    """Return the files of the settings on this node, fetched by name if they are not there yet.

    Lexicons only add names to the concepts of a release, so without a release none is fetched.
    """
    if not chosen.concepts:
        return NO_NAMES
    store = store or ModelStore()
    release = store.resolve(chosen.concepts, chosen.concepts_sha256 or None)
    return NameFiles(release, tuple(map(store.resolve, chosen.lexicons)))


def given_names(files: NameFiles, umls_types: Collection[str] = ()) -> Iterator[GivenName]:
    """Yield the names of the release (`read_concepts`), then those of lexicons for its concepts."""
    if files.release is not None:
        groups = [group for path in files.lexicons for group in read_lexicon(path)]
        yield from with_lexicons(read_concepts(files.release, umls_types), groups)


def with_lexicons(
    given: Iterable[GivenName], groups: Iterable[Collection[str]]
) -> Iterator[GivenName]:
    """Yield `given`, then the names of each group in which exactly one concept has its preferred
    name.

    Holds the groups in memory. Lexicons do not override the names of a release:
    `name_headings.SOURCES` ranks preferred names first.
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
