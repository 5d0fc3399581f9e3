from __future__ import annotations

import pytest

from cluster.text.name_shapes import names_by_shape


def test_names_by_shape_finds_genes_drugs_and_programs(subtests: pytest.Subtests) -> None:
    for text, found in [
        ("FunImageJ and AMG334 are new.", ["FunImageJ", "AMG334"]),
        ("Mosunetuzumab or daprodustat was given.", ["Mosunetuzumab", "daprodustat"]),
        ("anti-CD20 binds B cells", ["anti-CD20"]),
        ("HLA-B*57:01 was typed", ["HLA-B"]),
    ]:
        with subtests.test(text=text, found=found):
            assert names_by_shape(text) == found


def test_names_by_shape_skips_words_labels_and_ranges(subtests: pytest.Subtests) -> None:
    for text in [
        "RESULTS: None.",
        "It took 10-12 minutes.",
        "In April we chose a thermostat.",
        "",
        "An April vir",
    ]:
        with subtests.test(text=text):
            assert names_by_shape(text) == []
