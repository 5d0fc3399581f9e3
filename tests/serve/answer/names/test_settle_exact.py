"""Tests of the normalisation of exact answers, which must not change their meaning."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.answer.names.settle_exact import names_in, opening_verdict, settle_names, trim_name
from serve.support.compare_wording import read_wording

NAMES = st.one_of(
    st.text(alphabet="aZ5%.,;:'\"- µ(", max_size=12),
    st.sampled_from(["24%", "24", "0.5 mg/kg", ".05", "5'", "IL-6", "il-6", "10-12%", "3 mg"]),
)
GROUPS = st.lists(st.lists(NAMES, max_size=3), max_size=8)
QUICK = settings(max_examples=60)


@pytest.mark.slow
@QUICK
@given(GROUPS)
def test_settled_names_are_few_short_distinct_parts_of_the_given_ones(
    groups: list[list[str]],
) -> None:
    given_ = [" ".join(name.split()) for group in groups for name in group]
    settled = settle_names(groups, limit=3, max_chars=10)
    names = [name for group in settled for name in group]
    assert len(settled) <= 3
    assert all(0 < len(name) <= 10 for name in names)
    assert len(names) == len({name.casefold() for name in names})
    assert all(any(name in whole for whole in given_) for name in names)
    assert settle_names(settled, limit=3, max_chars=10) == settled


@pytest.mark.slow
@QUICK
@given(
    st.from_regex(r"[\"' .,]{0,2}-?\.?\d{1,3}(\.\d)? ?(%|mg|mg/kg)?[\"' .,]{0,2}", fullmatch=True)
)
def test_trim_name_keeps_numbers_and_units(name: str) -> None:
    assert read_wording(trim_name(name)).numbers == read_wording(name).numbers


def test_trim_name_removes_quotes_and_stops() -> None:
    trimmed = {
        '"IL-6".': "IL-6",
        "5'": "5'",
        ".05": ".05",
        "24 %,": "24 %",
        "  two\n words ": "two words",
    }
    assert {name: trim_name(name) for name in trimmed} == trimmed


def test_settle_names_drops_repeated_groups_but_keeps_different_units() -> None:
    for groups, settled in [
        ([["24%"], ["24"], ["24 mg"]], [["24%"], ["24"], ["24 mg"]]),
        ([["AQP4", "aquaporin-4"], ["Aquaporin-4"], ["IgG"]], [["AQP4", "aquaporin-4"], ["IgG"]]),
    ]:
        assert settle_names(groups, limit=5, max_chars=99) == settled


def test_opening_verdict_needs_punctuation() -> None:
    verdicts = {
        "Yes, exercise reduces the risk of recurrence.": "yes",
        "No. Valproate is contraindicated in pregnancy.": "no",
        "No significant difference was found.": None,
        "Noonan syndrome is caused by PTPN11.": None,
        "Exercise reduces the risk.": None,
    }
    assert {text: opening_verdict(text) for text in verdicts} == verdicts


def test_names_in_matches_whole_words() -> None:
    for names, source, kept in [
        (["BRCA1", "TP53"], "Mutated brca1 was found.", ["BRCA1"]),
        (["BRCA"], "Mutated BRCA1 was found.", []),
        (["heart failure"], "Heart\n failure.", ["heart failure"]),
        (["Ca(2+)", "(.*)"], "Ca(2+) enters.", ["Ca(2+)"]),
        (["evil.example", "metformin"], "metformin evil.example", ["metformin"]),
    ]:
        assert names_in(names, [source]) == kept, names
