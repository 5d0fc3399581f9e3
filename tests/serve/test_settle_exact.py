"""What is done to an exact answer last must not change what it says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.records import ExactAnswer
from serve.compare_wording import read_wording
from serve.settle_exact import affirms, keeps_numbers, settle_exact, settle_names, trim_name
from tests.serve.answering import evidence

NAMES = st.one_of(
    st.text(alphabet="aZ5%.,;:'\"- µ(", max_size=12),
    st.sampled_from(["24%", "24", "0.5 mg/kg", ".05", "5'", "IL-6", "il-6", "10-12%", "3 mg"]),
)
GROUPS = st.lists(st.lists(NAMES, max_size=3), max_size=8)
QUICK = settings(max_examples=60)

ASKED = "Is Cinpanemab effective for early Parkinson's disease?"
TRIAL = "Cinpanemab was effective for early Parkinson's disease in a randomised trial."
BINDS = "Cinpanemab bound alpha-synuclein in the cerebrospinal fluid, dose by dose."


@QUICK
@given(GROUPS)
def test_settling_twice_is_settling_once(groups: list[list[str]]) -> None:
    once = settle_names(groups, limit=5, max_chars=10)
    assert settle_names(once, limit=5, max_chars=10) == once


@QUICK
@given(GROUPS)
def test_every_name_is_part_of_one_that_was_given(groups: list[list[str]]) -> None:
    given_ = [" ".join(name.split()) for group in groups for name in group]
    for group in settle_names(groups, limit=5, max_chars=10):
        assert all(any(name in whole for whole in given_) for name in group)


@QUICK
@given(GROUPS)
def test_caps_hold_and_no_name_comes_twice(groups: list[list[str]]) -> None:
    settled = settle_names(groups, limit=3, max_chars=10)
    names = [name.casefold() for group in settled for name in group]
    assert len(settled) <= 3
    assert all(0 < len(name) <= 10 for name in names)
    assert len(names) == len(set(names))


@QUICK
@given(
    st.from_regex(r"[\"' .,]{0,2}-?\.?\d{1,3}(\.\d)? ?(%|mg|mg/kg)?[\"' .,]{0,2}", fullmatch=True)
)
def test_numbers_and_units_stay(name: str) -> None:
    assert read_wording(trim_name(name)).numbers == read_wording(name).numbers


@QUICK
@given(st.one_of(st.none(), st.text(max_size=5), GROUPS), st.sampled_from(["yesno", "list"]))
def test_any_answer_gets_the_form_of_its_type(exact: ExactAnswer, kind: str) -> None:
    settled = settle_exact(kind, exact, ASKED, evidence(TRIAL))  # type: ignore[arg-type]
    if kind == "yesno":
        assert settled in ("yes", "no")
    else:
        assert isinstance(settled, list)


@pytest.mark.parametrize(
    ("name", "trimmed"),
    [
        ('"IL-6".', "IL-6"),
        ("'aspirin'", "aspirin"),
        ("5'", "5'"),
        (".05", ".05"),
        ("24 %,", "24 %"),
        ("  two\n words ", "two words"),
    ],
)
def test_quotes_and_stops_go_but_nothing_that_means_something(name: str, trimmed: str) -> None:
    assert trim_name(name) == trimmed


def test_different_units_are_different_answers() -> None:
    assert settle_names([["24%"], ["24"], ["24 mg"]], limit=5, max_chars=99) == [
        ["24%"],
        ["24"],
        ["24 mg"],
    ]


def test_a_later_group_whose_name_came_before_is_dropped() -> None:
    groups = [["AQP4", "aquaporin-4"], ["Aquaporin-4"], ["IgG"]]
    assert settle_names(groups, limit=5, max_chars=99) == [["AQP4", "aquaporin-4"], ["IgG"]]


@pytest.mark.parametrize("word", ["Yes.", "yes", " YES "])
def test_a_yes_that_a_passage_states_stands(word: str) -> None:
    assert settle_exact("yesno", word, ASKED, evidence(TRIAL)) == "yes"


def test_a_related_finding_is_no_yes() -> None:
    """The first failure of paper 000, section 5.1.1: a biomarker taken for an effect."""
    assert settle_exact("yesno", "yes", ASKED, evidence(BINDS)) == "no"


def test_evidence_never_turns_a_no_into_a_yes() -> None:
    assert settle_exact("yesno", "no", ASKED, evidence(TRIAL)) == "no"


def test_a_denial_is_no_yes() -> None:
    denial = "Cinpanemab was not effective for early Parkinson's disease."
    assert not affirms(ASKED, evidence(denial))


@pytest.mark.parametrize(
    ("quote", "holds"),
    [
        (TRIAL, True),
        ("cinpanemab was EFFECTIVE, for early Parkinson's disease", True),
        ("Cinpanemab was effective for late Parkinson's disease", False),
        (BINDS, False),
        ("Cinpanemab", False),
        ("", False),
    ],
)
def test_a_yes_that_must_quote_needs_the_very_words(quote: str, holds: bool) -> None:
    assert affirms(ASKED, evidence(TRIAL, BINDS), quote) is holds


def test_a_number_of_no_premise_is_not_kept() -> None:
    premises = ["It succeeded in 24% of the women.", "It cost 14 euros."]
    assert keeps_numbers("It succeeded in 24% of the women.", premises)
    assert not keeps_numbers("It succeeded in 14% of the women.", premises)


def test_summaries_have_no_exact_answer() -> None:
    assert settle_exact("summary", "yes", ASKED, evidence(TRIAL)) is None
