"""Which kind of thing a question asks for, and which names cannot be of it."""

from __future__ import annotations

import pytest

from serve.answer.names.name_kinds import Kind, asked_kind, fits


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("Which gene is mutated in Alport syndrome?", "gene"),
        ("What is the safest oral drug?", "drug"),
        ("List diseases that ticks transmit.", "disease"),
        ("Which company makes a drug for gout?", "other"),
        ("Where is titin expressed?", None),
    ],
)
def test_the_kind_is_told_by_the_noun_that_is_asked_for(body: str, kind: Kind | None) -> None:
    assert asked_kind(body) == kind


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("gene", "Alport syndrome"),
        ("gene", "bevacizumab"),
        ("disease", "COL4A5"),
        ("disease", "imatinib"),
        ("drug", "glomerulonephritis"),
        ("drug", "patients"),
        (None, "the patients"),
    ],
)
def test_a_name_that_looks_like_another_kind_or_like_nothing_does_not_fit(
    kind: Kind | None, name: str
) -> None:
    assert not fits(kind, name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("gene", "COL4A5"),
        ("gene", "collagen"),
        ("drug", "PCSK9 inhibitors"),
        ("disease", "gout"),
        ("other", "head"),
        (None, "COL4A5"),
    ],
)
def test_a_name_whose_looks_do_not_tell_fits(kind: Kind | None, name: str) -> None:
    assert fits(kind, name)
