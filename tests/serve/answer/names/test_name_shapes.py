from __future__ import annotations

import pytest

from serve.answer.names.name_shapes import names_by_shape


def names(text: str) -> list[str]:
    return [name for name, _, _ in names_by_shape(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("FunImageJ and AMG334 are new.", ["FunImageJ", "AMG334"]),
        ("Mosunetuzumab or daprodustat was given.", ["Mosunetuzumab", "daprodustat"]),
        ("anti-CD20 binds B cells", ["anti-CD20"]),
        ("HLA-B*57:01 was typed", ["HLA-B"]),
    ],
)
def test_genes_drugs_and_programs_are_seen(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "RESULTS: None.",
        "It took 10-12 minutes.",
        "In April we chose a thermostat.",
        "",
        "An April vir",
    ],
)
def test_plain_words_labels_and_ranges_are_not(text: str) -> None:
    assert names(text) == []


def test_spans_are_those_of_the_text() -> None:
    text = "Given imatinib (STI571)."
    assert all(text[begin:end] == name for name, begin, end in names_by_shape(text))
    assert names(text) == ["imatinib", "STI571"]
