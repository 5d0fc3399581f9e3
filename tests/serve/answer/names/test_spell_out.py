from __future__ import annotations

import pytest

from cluster.text.mine_abbreviations import AbbreviationPair
from serve.answer.names.spell_out import spelt_out

PAIRS = [
    AbbreviationPair("ECMO", "extracorporeal membrane oxygenation"),
    AbbreviationPair("DMARDs", "disease-modifying antirheumatic drugs"),
    AbbreviationPair("DMARD", "disease modifying anti-rheumatic drug"),
    AbbreviationPair("ECMO", "Extracorporeal Membrane Oxygenation"),
]


def test_the_long_form_is_given_where_the_question_asks_for_it(subtests: pytest.Subtests) -> None:
    for body, long in [
        ("What is ECMO?", ["extracorporeal membrane oxygenation"]),
        ("What is the ECMO", ["extracorporeal membrane oxygenation"]),
        ('What does "ECMO" stand for?', ["extracorporeal membrane oxygenation"]),
        ("What does the acronym ECMO stand for in intensive care?", [PAIRS[0].long]),
        ("What are DMARDs?", [PAIRS[1].long, PAIRS[2].long]),
        ("What does DMARD stand for?", [PAIRS[1].long, PAIRS[2].long]),
        ("What is ECMO used for?", []),
        ("Which drugs are DMARDs?", []),
        ("What is PCR?", []),
        ("", []),
    ]:
        with subtests.test(body=body, long=long):
            assert spelt_out(body, PAIRS) == long
