"""Who or what was studied, from MeSH: people, which animals, or cells and molecules in vitro."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cluster.records import HUMANS_UI, Citation

PEOPLE, ANIMALS, IN_VITRO = "people", "animals", "in vitro"
ANIMALS_UI = "D000818"

# MeSH descriptors in lower case. Strains (Mice, Inbred C57BL) are matched by their first part.
_SPECIES_NAMES: Mapping[str, str] = {
    "mice": "mice",
    "rats": "rats",
    "rabbits": "rabbits",
    "dogs": "dogs",
    "cats": "cats",
    "swine": "pigs",
    "sheep": "sheep",
    "cattle": "cattle",
    "guinea pigs": "guinea pigs",
    "cricetinae": "hamsters",
    "macaca": "monkeys",
    "zebrafish": "zebrafish",
    "drosophila": "fruit flies",
    "caenorhabditis elegans": "nematodes",
    "chickens": "chickens",
    "horses": "horses",
}
_IN_VITRO_NAMES = re.compile(
    r"in vitro techniques|cells, cultured|cell line\b.*|tumor cells, cultured|primary cell culture"
    r"|(?:hela|hek293|hep g2|mcf-7|jurkat|a549|hct116|ht29|caco-2|k562|hl-60|pc-3|u937|thp-1) cells"
    r"|(?:cho|cos|pc12|nih 3t3|vero|l|bt-?474) cells"
)
# Age groups, which NLM's indexers assign only to studies of people. Male and Female are not among
# them, because they are assigned to studies of animals too.
_PERSONS = frozenset(
    (
        *("adult", "middle aged", "aged", "aged, 80 and over", "young adult", "adolescent"),
        *("child", "child, preschool", "infant", "infant, newborn"),
    )
)


def indexed_subjects(citation: Citation) -> tuple[str, ...]:
    """Return the subjects in MeSH: people, animals by species, in vitro; () if not indexed."""
    names = [heading.name.casefold() for heading in citation.mesh]
    uis = {heading.ui for heading in citation.mesh}
    found = [PEOPLE] if HUMANS_UI in uis else []
    if ANIMALS_UI in uis or "animals" in names:
        species = dict.fromkeys(filter(None, map(_species, names)))
        found += species or [ANIMALS]
    found += [IN_VITRO] if any(map(_IN_VITRO_NAMES.fullmatch, names)) else []
    return tuple(found)


def names_persons(citation: Citation) -> bool:
    """Return whether MeSH names an age group, which is assigned only to studies of people."""
    return any(heading.name.casefold() in _PERSONS for heading in citation.mesh)


def _species(name: str) -> str:
    return _SPECIES_NAMES.get(name.partition(", ")[0], "")


def without_people(subjects: tuple[str, ...]) -> bool:
    """Return whether animals or cells were studied, and no people as far as is known."""
    return bool(subjects) and PEOPLE not in subjects
