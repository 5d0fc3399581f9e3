"""Abbreviation mining; pairs marked "paper" are from Schwartz & Hearst (2003)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.text.mine_abbreviations import is_short_form, mine_abbreviations


def test_abbreviation_pairs_are_found(subtests: pytest.Subtests) -> None:
    for text, short, long in [
        # Examples of the paper.
        ("the heat shock factor (HSF) binds", "HSF", "heat shock factor"),
        ("Gcn5-related N-acetyltransferase (GNAT)", "GNAT", "Gcn5-related N-acetyltransferase"),
        ("of Thyroid transcription factor 1 (TTF-1) in", "TTF-1", "Thyroid transcription factor 1"),
        # Other examples.
        ("Type 2 diabetes mellitus (T2DM) is common.", "T2DM", "Type 2 diabetes mellitus"),
        ("we gave acetylsalicylic acid (ASA, 75 mg)", "ASA", "acetylsalicylic acid"),
        ("with polyethylene glycol 400 (PEG 400).", "PEG 400", "polyethylene glycol 400"),
        ("idecabtagene vicleucel (ide-cel) was", "ide-cel", "idecabtagene vicleucel"),
        ("It failed. Multiple\n  sclerosis (MS) is", "MS", "Multiple sclerosis"),
        ("mild severe multiple sclerosis (MS)", "MS", "multiple sclerosis"),
        # A match inside a word does not shorten a long form whose initials match.
        ("preterm premature membrane rupture (PPMR)", "PPMR", "preterm premature membrane rupture"),
        # The long form in parentheses after the short form.
        ("treated with TNF (tumor necrosis factor) and", "TNF", "tumor necrosis factor"),
        ("The WHO (World Health Organization; Geneva)", "WHO", "World Health Organization"),
    ]:
        with subtests.test(text=text, short=short):
            assert mine_abbreviations(text) == [(short, long)]


def test_remarks_in_parentheses_are_ignored(subtests: pytest.Subtests) -> None:
    for text in [
        "in 45 naive new patients (n = 45) the",
        "as Smith and others showed (2003)",
        "the figure is given here (Fig. 1)",
        "IL-6 rose in the first group (P < 0.001)",
        "compared with untreated controls (control)",
        "a mean of eleven (mean) of all",
        "thirteen percent, 13 of a hundred (13 percent)",
        "a vitamin (A) deficiency",
        "CD4 (mature) cells",
        "the receptor (see Table II) bound",
        "nothing at all ()",
        "(HSF) alone",
        "",
        # The paper states that its algorithm does not find this pair.
        "cyclophilin seven suppressor (CNS1)",
        "We saw a Heat. Shock follows (HS).",
        "troponin I (cTnI) and T (cTnT)",
        # A short form of two letters allows a long form of four words: min(2 + 5, 2 * 2).
        "alpha one two three beta (AB)",
        "atp (TP)",
    ]:
        with subtests.test(text=text):
            assert mine_abbreviations(text) == []


@pytest.mark.parametrize("text", ["(" * 50_000, "A (" * 20_000, ")(" * 20_000, "(AB) " * 20_000])
def test_hostile_parentheses_take_linear_time(text: str) -> None:
    assert mine_abbreviations(text) == []


@pytest.mark.slow
@given(st.text(alphabet="aAbB1 .-(),;[]\u00e9\u0130\U0001d6fc", max_size=200))
def test_any_text_gives_valid_pairs(text: str) -> None:
    for pair in mine_abbreviations(text):
        assert is_short_form(pair.short)
        assert len(pair.long) > len(pair.short)
