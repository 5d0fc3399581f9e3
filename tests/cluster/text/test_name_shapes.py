from __future__ import annotations

import pytest

from cluster.text.name_shapes import names_by_shape


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("FunImageJ and AMG334 are new.", ["FunImageJ", "AMG334"]),
        ("Mosunetuzumab or daprodustat was given.", ["Mosunetuzumab", "daprodustat"]),
        ("anti-CD20 binds B cells", ["anti-CD20"]),
        ("HLA-B*57:01 was typed", ["HLA-B"]),
        ("RESULTS: None.", []),
        ("It took 10-12 minutes.", []),
        ("In April we chose a thermostat.", []),
        ("", []),
        ("An April vir", []),
    ],
)
def test_names_by_shape_finds_names_but_no_words_labels_or_ranges(
    text: str, found: list[str]
) -> None:
    assert names_by_shape(text) == found
