"""Determine a study's design from NLM's publication types, MeSH, or the article's title."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cluster.records import Citation
from cluster.study_design.designs import DESIGN_WORDS, Design, ToldBy
from cluster.study_design.read_words import is_about_another, read_design
from cluster.study_design.subjects import (
    IN_VITRO,
    PEOPLE,
    indexed_subjects,
    names_persons,
    without_people,
)

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
_ABOUT_ANOTHER = frozenset(
    (
        *("clinical trial protocol", "comment", "editorial", "news", "newspaper article"),
        *("published erratum", "retraction of publication", "expression of concern"),
        *("biography", "interview", "congress", "introductory journal article"),
    )
)
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
# Designs that summarise other studies are kept even if those studied animals or cells.
_SYNTHESES = frozenset({"guideline", "meta_analysis", "systematic_review", "review"})


@dataclass(frozen=True, slots=True)
class StudyDesign:
    """A study design; `told_by` is the source of `name`.

    `subjects` are people, animals by species, or in vitro; empty if the record is not indexed.
    """

    name: Design = "other"
    told_by: ToldBy = ""
    subjects: tuple[str, ...] = ()


def tell_design(citation: Citation) -> StudyDesign:
    """Return the design of a citation; "other" if types, headings and title do not state it.

    A retracted article keeps its design. A comment, notice or protocol has none. A study that is
    only of animals according to MeSH is an animal study, even if it is randomised.
    """
    subjects = indexed_subjects(citation)
    types = {name.casefold() for name in citation.publication_types}
    if types & _ABOUT_ANOTHER or is_about_another(citation):
        return StudyDesign("other", "publication_types" if types & _ABOUT_ANOTHER else "words")
    typed = _first(_TYPES, types)
    if typed is not None and (typed in _SYNTHESES or not without_people(subjects)):
        return StudyDesign(typed, "publication_types", subjects)
    indexed = _design_by_mesh(citation, subjects)
    if indexed is not None:
        return StudyDesign(indexed, "mesh", subjects)
    # If a letter reports cases, its type says so; its words are often about another article.
    said = None if "letter" in types else read_design(citation)
    return StudyDesign(said, "words", subjects) if said else StudyDesign(subjects=subjects)


def _design_by_mesh(citation: Citation, subjects: tuple[str, ...]) -> Design | None:
    if without_people(subjects):
        return "in_vitro" if subjects == (IN_VITRO,) else "animal"
    observed = _first(_HEADINGS, {heading.name.casefold() for heading in citation.mesh})
    if observed is None and subjects == (PEOPLE, IN_VITRO) and not names_persons(citation):
        # Human cell lines are indexed with Humans as well.
        return "in_vitro"
    return observed


def _first(rules: Iterable[tuple[str, Design]], held: Iterable[str]) -> Design | None:
    known = frozenset(held)
    return next((design for name, design in rules if name in known), None)


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
