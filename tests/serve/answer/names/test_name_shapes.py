from __future__ import annotations

import pytest

from serve.answer.names.name_shapes import names_by_shape


def test_genes_drugs_and_programs_are_seen(subtests: pytest.Subtests) -> None:
    for text, found in [
        ("FunImageJ and AMG334 are new.", ["FunImageJ", "AMG334"]),
        ("Mosunetuzumab or daprodustat was given.", ["Mosunetuzumab", "daprodustat"]),
        ("anti-CD20 binds B cells", ["anti-CD20"]),
        ("HLA-B*57:01 was typed", ["HLA-B"]),
    ]:
        with subtests.test(text=text, found=found):
            assert names_by_shape(text) == found


def test_plain_words_labels_and_ranges_are_not(subtests: pytest.Subtests) -> None:
    for text in [
        "RESULTS: None.",
        "It took 10-12 minutes.",
        "In April we chose a thermostat.",
        "",
        "An April vir",
    ]:
        with subtests.test(text=text):
            assert names_by_shape(text) == []
