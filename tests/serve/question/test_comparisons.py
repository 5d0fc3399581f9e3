from __future__ import annotations

import pytest

from serve.question.comparisons import compared_with, compares, speaks_of


@pytest.mark.parametrize(
    ("question", "sentence", "tells"),
    [
        ("Is A1 better than placebo in asthma?", "A1 was superior to placebo.", True),
        ("Is A1 better than placebo in asthma?", "A1 is a drug for asthma.", False),
        ("Is A1 better than placebo in asthma?", "A1 and placebo were given.", False),
        ("Is A1 as effective as warfarin for clots?", "A1 was noninferior to warfarin.", True),
        ("Is A1 as effective as warfarin for clots?", "A1 needs no monitoring.", False),
        ("Is A1 inferior to sorafenib?", "A1 and sorafenib did not differ.", True),
        ("Does A1 last more than 5 years?", "A1 is durable.", True),
        ("Is A1 effective?", "A1 is effective.", True),
    ],
)
def test_a_sentence_that_answers_a_comparison_compares_with_the_same(
    question: str, sentence: str, tells: bool
) -> None:
    compared = compared_with(question)
    assert (speaks_of(sentence, compared) and compares(sentence, compared)) is tells
