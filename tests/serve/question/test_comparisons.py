from __future__ import annotations

import pytest

from serve.question.comparisons import compared_with, compares, names_another, speaks_of


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


@pytest.mark.parametrize(
    ("body", "sentence", "another"),
    [
        ("Is curevit directed against CD20?", "Curevit targets CD38.", True),
        ("Is curevit directed against CD20?", "Curevit targets CD38, unlike anti-CD20.", False),
        ("Is curevit directed against CD20?", "Curevit targets B cells.", False),
        ("Does IL-6 cause fever?", "IL-17A causes fever.", True),
        ("Does IL-6 cause fever?", "IL6 causes fever, and IL-17A does not.", False),
        ("Is curevit for carriers of BRCA2?", "It is for carriers of BRCA1/2.", False),
        ("Does curevit block COX-2?", "It blocks COX-1 and -2.", False),
        ("Does CYP2D6 convert codeine?", "CYP3A4 converts codeine.", True),
        ("Does curevit help in 2020?", "It helped in 2019.", False),
    ],
)
def test_a_like_with_another_number_is_another_thing(
    body: str, sentence: str, another: bool
) -> None:
    assert names_another(sentence, body) is another
