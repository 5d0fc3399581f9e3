"""Outcomes of judged answers: right, held back or wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.answers.judge import judge, same_thing
from tests.answers.suite import Row

CITATIONS = [{"pmid": 95_000_001, "title": "T", "text": "The gene PTPN11 shapes the neck."}]


def row(type: str, expected: Any = None, forbidden: tuple[str, ...] = ()) -> Row:
    fields = {"id": "a-01", "question": "Q?", "type": type, "expected": expected}
    return Row.model_validate({**fields, "forbidden": forbidden, "evidence": CITATIONS})


def outcome(row: Row, verdict: str, exact: Any) -> str:
    return judge(row, SimpleNamespace(verdict=verdict, exact=exact)).outcome  # type: ignore[arg-type]


def test_polarity_is_judged_by_the_verdict(subtests: pytest.Subtests) -> None:
    for expected, verdict, exact, wanted in [
        ("no", "answered", "no", "right"),
        ("no", "answered", "yes", "wrong"),
        ("no", "answered", None, "wrong"),
        ("no", "mixed", "yes", "held back"),
        ("no", "not_enough_evidence", "yes", "held back"),
        ("mixed", "mixed", None, "right"),
        ("mixed", "not_enough_evidence", None, "held back"),
        ("mixed", "answered", "yes", "wrong"),
    ]:
        with subtests.test(expected=expected, verdict=verdict):
            assert outcome(row("yesno", expected), verdict, exact) == wanted


@pytest.mark.parametrize("verdict", ["answered", "mixed"])
def test_unanswerable_question_must_be_declined(verdict: str) -> None:
    assert outcome(row("factoid"), verdict, [["Paris"]]) == "wrong"
    assert outcome(row("factoid"), "not_enough_evidence", None) == "right"


def test_factoid_is_judged_by_any_synonym_of_its_first_answer() -> None:
    one = row("factoid", [["PTPN11", "SHP2"]])
    assert outcome(one, "answered", [["SHP2"], ["SOS1"]]) == "right"
    assert outcome(one, "answered", [["SOS1"], ["SHP2"]]) == "wrong"
    assert outcome(one, "not_enough_evidence", []) == "held back"


def test_list_is_right_if_its_f1_is_high_enough() -> None:
    two = row("list", [["PTPN11"], ["SOS1"]])
    assert outcome(two, "answered", [["PTPN11"], ["RAF1"]]) == "right"
    assert outcome(two, "answered", [["PTPN11"], ["A"], ["B"]]) == "wrong"


@pytest.mark.parametrize("said", ["neck", "Neck", "webbed neck"])
def test_name_of_the_wrong_type_is_wrong(said: str) -> None:
    one = row("factoid", [["PTPN11"]], ("neck",))
    assert outcome(one, "answered", [["PTPN11"], [said]]) == "wrong"


def test_forbidden_word_is_allowed_within_an_expected_name() -> None:
    one = row("factoid", [["cat scratch disease"]], ("cat",))
    assert outcome(one, "answered", [["cat scratch disease"]]) == "right"
    assert outcome(one, "answered", [["cat scratch disease", "cat"]]) == "wrong"


def test_name_with_a_few_extra_words_is_accepted(subtests: pytest.Subtests) -> None:
    for said, name in [
        ("CFTR gene", "CFTR"),
        ("\u03b1-synuclein", "alpha-synuclein"),
        ("about 40 years", "40 years"),
        ("0.5 mg", "0.5 mg"),
        ("500 \u00b5g", "500 \u03bcg"),
        (
            "inhibits the release of acetylcholine at motor nerve endings",
            "inhibits the release of acetylcholine",
        ),
    ]:
        with subtests.test(said=said, name=name):
            assert same_thing(said, name)


@pytest.mark.parametrize(
    ("said", "name"),
    [("5 mg", "0.5 mg"), ("0.5 g", "0.5 mg"), ("BRCA1 and four other genes of repair", "BRCA1")],
)
def test_other_value_or_sentence_is_not_accepted_as_the_name(said: str, name: str) -> None:
    assert not same_thing(said, name)
