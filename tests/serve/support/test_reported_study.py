from __future__ import annotations

from cluster.records import Author, Citation, Section
from serve.support.reported_study import ReportedStudy, may_be, of_trial, read_report, shared_words


def trial(text: str, pmid: int = 1, title: str = "", **fields: object) -> Citation:
    return Citation(pmid, title=title, sections=(Section("", text),), **fields)  # type: ignore[arg-type]


REPORTED = {
    "In the SPRINT trial, valsartan reduced strokes.":
        ReportedStudy("valsartan reduced strokes.", trial="SPRINT", cued=True),
    "Doe et al. (2010) reported that valsartan reduced strokes.":
        ReportedStudy("reported that valsartan reduced strokes.", "Doe", 2010, cued=True),
    "Valsartan reduced strokes (O'Neil et al., 2010b).":
        ReportedStudy("Valsartan reduced strokes .", "O'Neil", 2010, cued=True),
    "Valsartan reduced strokes [12, 14-16].":
        ReportedStudy("Valsartan reduced strokes.", cued=True),
    "Valsartan reduced strokes in 2010.": ReportedStudy("Valsartan reduced strokes in 2010."),
    "In the trial, it did not.": ReportedStudy("In the trial, it did not."),
}  # fmt: skip


def test_words_that_name_a_study_are_read() -> None:
    assert {sentence: read_report(sentence) for sentence in REPORTED} == REPORTED


def test_study_must_have_the_numbers_names_and_author_of_the_report() -> None:
    study = read_report("Doe et al. (2010) found that valsartan reduced strokes by 25%.")
    own = "Valsartan reduced strokes by 25%."
    assert may_be(study, trial(own))
    assert may_be(study, trial(own, authors=(Author("Doe", "Jo", "J"),), year=2011))
    assert not may_be(study, trial(own, authors=(Author("Roe", "Jo", "J"),), year=2010))
    assert not may_be(study, trial(own, authors=(Author("Doe", "Jo", "J"),), year=2004))
    assert not may_be(study, trial("Valsartan reduced strokes by 35%."))
    assert not may_be(study, trial("Losartan reduced strokes by 25%."))


def test_trial_is_sought_by_its_name_if_a_study_has_it() -> None:
    study = read_report("In the SPRINT trial, valsartan reduced strokes.")
    named, other = trial("A trial.", 1, "The SPRINT trial"), trial("Valsartan reduced strokes.", 2)
    assert of_trial(study, [other, named]) == [named]
    assert of_trial(study, [other]) == [other]
    assert shared_words(study, other) == 1.0
