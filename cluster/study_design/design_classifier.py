"""Determine a citation's study design and subjects from its publication types and MeSH."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cluster.records import HUMANS_UI, Citation
from cluster.study_design.designs import DESIGN_WORDS, Design, DesignSource

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
_PERSONS = {
    *("adult", "middle aged", "aged", "aged, 80 and over", "young adult", "adolescent"),
    *("child", "child, preschool", "infant", "infant, newborn"),
}
# NLM's publication types (https://www.nlm.nih.gov/mesh/pubtypes.html). The first one that a record
# has decides, so that a systematic review with a meta-analysis is a meta-analysis.
_TYPES: tuple[tuple[str, Design], ...] = (
    ("practice guideline", "guideline"),
    ("guideline", "guideline"),
    ("consensus development conference", "guideline"),
    ("consensus development conference, nih", "guideline"),
    ("network meta-analysis", "meta_analysis"),
    ("meta-analysis", "meta_analysis"),
    ("systematic review", "systematic_review"),
    ("randomized controlled trial, veterinary", "animal"),
    ("clinical trial, veterinary", "animal"),
    ("observational study, veterinary", "animal"),
    ("randomized controlled trial", "randomised_trial"),
    ("controlled clinical trial", "clinical_trial"),
    ("pragmatic clinical trial", "clinical_trial"),
    ("equivalence trial", "clinical_trial"),
    ("adaptive clinical trial", "clinical_trial"),
    ("clinical trial, phase i", "clinical_trial"),
    ("clinical trial, phase ii", "clinical_trial"),
    ("clinical trial, phase iii", "clinical_trial"),
    ("clinical trial, phase iv", "clinical_trial"),
    ("clinical trial", "clinical_trial"),
    ("case reports", "case_report"),
    ("scoping review", "review"),
    ("review", "review"),
)
# Types of records about another article, or about a study that is only planned.
_ABOUT_ANOTHER = {
    *("clinical trial protocol", "comment", "editorial", "news", "newspaper article"),
    *("published erratum", "retraction of publication", "expression of concern"),
    *("biography", "interview", "congress", "introductory journal article"),
}
# MeSH descriptors of a study's method. Indexers assign them to the study itself; those "as Topic"
# describe the subject of an article and are ignored. The first one that a record has decides.
_HEADINGS: tuple[tuple[str, Design], ...] = (
    ("case-control studies", "case_control"),
    ("cohort studies", "cohort"),
    ("prospective studies", "cohort"),
    ("longitudinal studies", "cohort"),
    ("cross-sectional studies", "cross_sectional"),
    ("retrospective studies", "cohort"),
    ("follow-up studies", "cohort"),
)
# Designs that summarise other studies. They apply even to studies of animals or cells.
SYNTHESES = frozenset({"guideline", "meta_analysis", "systematic_review", "review"})


@dataclass(frozen=True, slots=True)
class StudyDesign:
    """A study design; `source` is the source of `name`.

    `subjects` are people, animals by species, or in vitro; empty if the record is not indexed.
    """

    name: Design = "other"
    source: DesignSource = ""
    subjects: tuple[str, ...] = ()


def classify_design(citation: Citation) -> StudyDesign:
    """Return the design of a citation; "other" if its record does not state one.

    A retracted article keeps its design. A comment, notice or protocol has none. A study of animals
    only, according to MeSH, is an animal study even if it is randomised.
    """
    subjects = indexed_subjects(citation)
    types = {name.casefold() for name in citation.publication_types}
    if types & _ABOUT_ANOTHER:
        return StudyDesign("other", "publication_types")
    typed = _first(_TYPES, types)
    if typed is not None and (typed in SYNTHESES or not without_people(subjects)):
        return StudyDesign(typed, "publication_types", subjects)
    indexed = _design_by_mesh(citation, subjects)
    return StudyDesign(indexed or "other", "mesh" if indexed else "", subjects)


def names_of_design(design: str) -> tuple[list[str], list[str]]:
    """Return the publication types, and the MeSH headings, that alone give an article `design`.

    All are in lower case.
    """
    types, headings = (
        [name for name, given in rules if given == design] for rules in (_TYPES, _HEADINGS)
    )
    return types, headings


def _design_by_mesh(citation: Citation, subjects: tuple[str, ...]) -> Design | None:
    if without_people(subjects):
        return "in_vitro" if subjects == (IN_VITRO,) else "animal"
    observed = _first(_HEADINGS, {heading.name.casefold() for heading in citation.mesh})
    if observed is None and subjects == (PEOPLE, IN_VITRO) and not names_persons(citation):
        # NLM also assigns the descriptor Humans to studies of human cell lines.
        return "in_vitro"
    return observed


def _first(rules: Iterable[tuple[str, Design]], held: set[str]) -> Design | None:
    return next((design for name, design in rules if name in held), None)


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
    """Return whether `subjects` names animals or cells, but no people."""
    return bool(subjects) and PEOPLE not in subjects


def design_words(name: Design, subjects: tuple[str, ...]) -> str:
    """Return the design in words: "randomised trial", "review, in mice" or "study in vitro".

    Animals and in vitro are named if no people were studied. Returns "" if nothing is known.
    """
    if not without_people(subjects):
        return DESIGN_WORDS[name]
    animals = " and ".join(name for name in subjects if name != IN_VITRO)
    where = " and ".join([f"in {animals}"] * bool(animals) + [IN_VITRO] * (IN_VITRO in subjects))
    if name in ("animal", "in_vitro", "other"):
        return f"study {where}"
    return f"{DESIGN_WORDS[name]}, {where}"
