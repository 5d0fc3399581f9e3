"""Who or what was studied: people, which animals, or cells and molecules in vitro."""

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

_WORDS = re.compile(r"[A-Za-z]+")
# Without "mouse", which may describe a reagent, as in "mouse monoclonal antibody".
_ANIMAL_WORDS: Mapping[str, str] = {
    "mice": "mice",
    "rats": "rats",
    "rabbits": "rabbits",
    "cats": "cats",
    "dogs": "dogs",
    "beagles": "dogs",
    "pigs": "pigs",
    "piglets": "pigs",
    "hamsters": "hamsters",
    "monkeys": "monkeys",
    "macaques": "monkeys",
    "zebrafish": "zebrafish",
    "drosophila": "fruit flies",
    "elegans": "nematodes",
}
_ANIMAL_PHRASES: Mapping[str, str] = {
    "mouse model": "mice",
    "murine model": "mice",
    "rat model": "rats",
    "nonhuman primate": "monkeys",
    "non-human primate": "monkeys",
    "in animals": ANIMALS,
    "animals were": ANIMALS,
    "animal model of": ANIMALS,
}
_IN_VITRO_PHRASES = (
    *("in vitro", "cell line", "cells were", "cultured cells", "hela cells", "hek293 cells"),
    *("hepg2 cells", "mcf-7 cells", "jurkat cells", "a549 cells", "sh-sy5y cells", "thp-1 cells"),
    *("cultured neurons", "cultured hepatocytes", "cultured fibroblasts", "cultured human"),
)
# Without a named species, "in vivo" may refer to yeast as well as to patients.
_IN_VIVO_PHRASES = ("in vivo", "xenograft")
# Authors describe their own experiments in the past tense or the first person.
_EXPERIMENT = frozenset(("we", "our", "here", "was", "were"))
# Words of articles about software, which is often tested on data of cell lines.
_COMPUTING = frozenset(("software", "package", "computational", "database", "portal", "learning"))
_PEOPLE_WORDS = frozenset(
    (
        *("patient", "patients", "participant", "participants", "volunteer", "volunteers", "men"),
        *("women", "boy", "boys", "girl", "girls", "child", "children", "infant", "infants"),
        *("neonate", "neonates", "adolescents", "person", "persons", "people", "humans"),
        *("outpatients", "proband", "probands", "family", "families", "pregnant", "pregnancy"),
        *("pregnancies", "individuals"),
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


def said_subjects(text: str) -> tuple[str, ...]:
    """Return the subjects that a text names: people, animals by species, in vitro."""
    # Skip words in mixed case, such as the transcripts "DoGs"; words in capitals are headings.
    found = (w for w in _WORDS.findall(text) if w[1:].islower() or w.isupper())
    words = {word.lower() for word in found}
    people = [PEOPLE] if words & _PEOPLE_WORDS else []
    if not words & _EXPERIMENT:
        return tuple(people)
    lowered = text.lower()
    named = [name for word, name in _ANIMAL_WORDS.items() if word in words]
    named += [name for phrase, name in _ANIMAL_PHRASES.items() if phrase in lowered]
    # Drop "animals" if a species is named.
    animals = list(dict.fromkeys(name for name in named if name != ANIMALS) or named[:1])
    lab = not words & _COMPUTING and any(phrase in lowered for phrase in _IN_VITRO_PHRASES)
    alive = any(phrase in lowered for phrase in _IN_VIVO_PHRASES)
    return (*people, *animals, *([IN_VITRO] if lab and (animals or not alive) else []))


def without_people(subjects: tuple[str, ...]) -> bool:
    """Return whether animals or cells were studied, and no people as far as is known."""
    return bool(subjects) and PEOPLE not in subjects
