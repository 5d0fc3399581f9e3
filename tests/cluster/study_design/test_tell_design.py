"""The design of a study is told from types, headings and words, and not where these do not tell."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.records import Citation, MeshHeading, Section
from cluster.study_design.tell_design import design_words, tell_design

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


def design(*args: str, **fields: Any) -> str:
    return tell_design(record(*args, **fields)).name


def test_publication_types_decide_first(subtests: pytest.Subtests) -> None:
    for types, expected in [
        ("Practice Guideline", "guideline"),
        ("Meta-Analysis; Systematic Review", "meta_analysis"),
        ("Systematic Review; Review", "systematic_review"),
        ("Clinical Trial, Phase III; Randomized Controlled Trial", "randomised_trial"),
        ("Clinical Trial, Phase II", "clinical_trial"),
        ("Case Reports; Review", "case_report"),
        ("Letter; Randomized Controlled Trial", "randomised_trial"),
        ("Review", "review"),
        ("Randomized Controlled Trial, Veterinary", "animal"),
        ("Clinical Trial Protocol; Randomized Controlled Trial", "other"),
        ("Comment; Meta-Analysis", "other"),
        ("Editorial", "other"),
        ("Retraction of Publication", "other"),
    ]:
        with subtests.test(types=types, expected=expected):
            told = tell_design(record(types=types))
            assert (told.name, told.told_by) == (expected, "publication_types")


def test_headings_decide_where_types_do_not(subtests: pytest.Subtests) -> None:
    for mesh, expected in [
        ("Humans; Cohort Studies", "cohort"),
        ("Humans; Cohort Studies; Case-Control Studies", "case_control"),
        ("Humans; Cross-Sectional Studies; Retrospective Studies", "cross_sectional"),
        ("Humans; Randomized Controlled Trials as Topic", "other"),
        ("Animals; Mice, Inbred C57BL; Male", "animal"),
        ("Animals; Mice; Cells, Cultured", "animal"),
        ("Humans; Cell Line, Tumor", "in_vitro"),
        ("Humans; Adult; Cell Line, Tumor", "other"),
        ("Humans; Animals; Mice", "other"),
        ("In Vitro Techniques", "in_vitro"),
    ]:
        with subtests.test(mesh=mesh, expected=expected):
            assert design(mesh=mesh) == expected


def test_a_randomised_trial_in_animals_alone_is_a_study_of_animals() -> None:
    types = "Randomized Controlled Trial"
    assert design(types=types, mesh="Animals; Dogs") == "animal"
    assert design(types=types, mesh="Humans; Animals; Dogs") == "randomised_trial"


def test_a_review_of_studies_in_mice_is_a_review_and_says_mice() -> None:
    told = tell_design(record(types="Review", mesh="Animals; Mice"))
    assert design_words(told.name, told.subjects) == "review, in mice"


def test_titles_are_read_where_nobody_indexed_the_record(subtests: pytest.Subtests) -> None:
    for title, expected in [
        ("Aspirin for stroke: a systematic review and meta-analysis.", "meta_analysis"),
        ("Aspirin for stroke: a systematic review.", "systematic_review"),
        ("Clinical practice guidelines for the management of gout.", "guideline"),
        ("Adherence to clinical practice guidelines for the management of gout.", "other"),
        ("Aspirin in stroke: a randomised, double-blind, phase 3 trial.", "randomised_trial"),
        ("A non-randomized trial of aspirin.", "other"),
        ("A systematic review of randomized trials of aspirin.", "systematic_review"),
        ("Mendelian randomization of urate and gout.", "other"),
        ("A phase II study of imatinib.", "clinical_trial"),
        ("Smoking and gout: a case-control study.", "case_control"),
        ("Urate and gout: a prospective cohort study.", "cohort"),
        ("Gout: a retrospective chart review.", "cohort"),
        ("Gout in farmers: a cross-sectional survey.", "cross_sectional"),
        ("Green urine after propofol: a case report and review of the literature.", "case_report"),
        ("Listeria brain abscess: two cases and review of the literature.", "case_report"),
        ("Gout: a narrative review.", "review"),
        ("Aspirin in stroke: protocol for a randomised controlled trial.", "other"),
        ("Aspirin in stroke: study protocol of a randomised trial.", "other"),
        ("Rationale and design of the ABC trial: a randomised trial.", "other"),
        ("Comment on: Aspirin for stroke: a meta-analysis.", "other"),
        ("Reply to 'a randomised trial of aspirin'.", "other"),
        ("Retraction: Aspirin in stroke, a randomised trial.", "other"),
        ("A meta-analysis of genome-wide association studies.", "other"),
        ("Gout.", "other"),
    ]:
        with subtests.test(title=title, expected=expected):
            assert design(title) == expected


def test_abstracts_without_indexing_do_not_give_design_or_subjects() -> None:
    told = tell_design(record(abstract="Mice were randomly assigned to drug or vehicle."))
    assert (told.name, told.told_by, told.subjects) == ("other", "", ())


def test_titles_do_not_override_indexing_of_animals() -> None:
    title = "Two diets: a randomised trial."
    assert design(title, mesh="Animals; Rats") == "animal"


def test_a_section_on_design_may_name_it_alone() -> None:
    sections = (Section("STUDY DESIGN", "Prospective cohort study."), Section("RESULTS", "Gout."))
    assert tell_design(Citation(1, title="Gout.", sections=sections)).name == "cohort"


def test_words_tell_the_design_and_that_it_was_not_on_people(subtests: pytest.Subtests) -> None:
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
