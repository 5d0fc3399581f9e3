"""Tests of study designs, which publication types and MeSH headings determine."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.records import Citation, MeshHeading, Section
from cluster.study_design.design_classifier import classify_design, design_words

UIS = {"Humans": "D006801", "Animals": "D000818"}


def record(
    title: str = "On a drug.", abstract: str = "", mesh: str = "", types: str = "", **fields: Any
) -> Citation:
    headings = [MeshHeading(UIS.get(name, "D1"), name, False) for name in mesh.split("; ") if name]
    return Citation(
        1,
        title=title,
        sections=(Section("", abstract),) if abstract else (),
        mesh=tuple(headings),
        publication_types=("Journal Article", *filter(None, types.split("; "))),
        **fields,
    )


@pytest.mark.parametrize(
    ("types", "mesh", "expected"),
    [
        ("Practice Guideline", "", "guideline"),
        ("Meta-Analysis; Systematic Review", "", "meta_analysis"),
        ("Systematic Review; Review", "", "systematic_review"),
        ("Clinical Trial, Phase III; Randomized Controlled Trial", "", "randomised_trial"),
        ("Clinical Trial, Phase II", "", "clinical_trial"),
        ("Case Reports; Review", "", "case_report"),
        ("Letter; Randomized Controlled Trial", "", "randomised_trial"),
        ("Review", "", "review"),
        ("Randomized Controlled Trial, Veterinary", "", "animal"),
        ("Clinical Trial Protocol; Randomized Controlled Trial", "", "other"),
        ("Comment; Meta-Analysis", "", "other"),
        ("Editorial", "", "other"),
        ("Retraction of Publication", "", "other"),
        ("", "Humans; Cohort Studies", "cohort"),
        ("", "Humans; Cohort Studies; Case-Control Studies", "case_control"),
        ("", "Humans; Cross-Sectional Studies; Retrospective Studies", "cross_sectional"),
        ("", "Humans; Randomized Controlled Trials as Topic", "other"),
        ("", "Animals; Mice, Inbred C57BL; Male", "animal"),
        ("", "Animals; Mice; Cells, Cultured", "animal"),
        ("", "Humans; Cell Line, Tumor", "in_vitro"),
        ("", "Humans; Adult; Cell Line, Tumor", "other"),
        ("", "Humans; Animals; Mice", "other"),
        ("", "In Vitro Techniques", "in_vitro"),
        ("Randomized Controlled Trial", "Animals; Dogs", "animal"),
        ("Randomized Controlled Trial", "Humans; Animals; Dogs", "randomised_trial"),
    ],
)
def test_classify_design_prefers_publication_types_to_mesh(
    types: str, mesh: str, expected: str
) -> None:
    design = classify_design(record(types=types, mesh=mesh))
    assert design.name == expected
    assert mesh or design.source == "publication_types"


def test_design_words_of_a_review_of_mouse_studies_names_mice() -> None:
    design = classify_design(record(types="Review", mesh="Animals; Mice"))
    assert design_words(design.name, design.subjects) == "review, in mice"


def test_title_and_abstract_do_not_give_design_or_subjects() -> None:
    design = classify_design(record("A randomised trial in mice.", "Mice were randomly assigned."))
    assert (design.name, design.source, design.subjects) == ("other", "", ())


def test_design_words_name_subjects_other_than_people(subtests: pytest.Subtests) -> None:
    for name, subjects, words in [
        ("randomised_trial", ("people",), "randomised trial"),
        ("animal", ("mice", "rats"), "study in mice and rats"),
        ("in_vitro", ("in vitro",), "study in vitro"),
        ("animal", ("mice", "in vitro"), "study in mice and in vitro"),
        ("animal", (), "animal study"),
        ("other", ("people",), ""),
        ("other", (), ""),
    ]:
        with subtests.test(name=name, subjects=subjects):
            assert design_words(name, subjects) == words
