from __future__ import annotations

import pytest

from serve.question.comparisons import (
    compared_with,
    compares,
    is_nearer_another,
    is_of_all,
    names_another,
    speaks_of,
    subject_of,
)


def test_a_sentence_that_answers_a_comparison_compares_with_the_same(
    subtests: pytest.Subtests,
) -> None:
    for question, sentence, tells in [
        ("Is A1 better than placebo in asthma?", "A1 was superior to placebo.", True),
        ("Is A1 better than placebo in asthma?", "A1 is a drug for asthma.", False),
        ("Is A1 better than placebo in asthma?", "A1 and placebo were given.", False),
        ("Is A1 as effective as warfarin for clots?", "A1 was noninferior to warfarin.", True),
        ("Is A1 as effective as warfarin for clots?", "A1 needs no monitoring.", False),
        ("Is A1 inferior to sorafenib?", "A1 and sorafenib did not differ.", True),
        ("Does A1 last more than 5 years?", "A1 is durable.", True),
        ("Is A1 effective?", "A1 is effective.", True),
    ]:
        with subtests.test(question=question, sentence=sentence):
            compared = compared_with(question)
            assert (speaks_of(sentence, compared) and compares(sentence, compared)) is tells


def test_a_like_with_another_number_is_another_thing(subtests: pytest.Subtests) -> None:
    for body, sentence, another in [
        ("Is curevit directed against CD20?", "Curevit targets CD38.", True),
        ("Is curevit directed against CD20?", "Curevit targets CD38, unlike anti-CD20.", False),
        ("Is curevit directed against CD20?", "Curevit targets B cells.", False),
        ("Does IL-6 cause fever?", "IL-17A causes fever.", True),
        ("Does IL-6 cause fever?", "IL6 causes fever, and IL-17A does not.", False),
        ("Is curevit for carriers of BRCA2?", "It is for carriers of BRCA1/2.", False),
        ("Does curevit block COX-2?", "It blocks COX-1 and -2.", False),
        ("Does CYP2D6 convert codeine?", "CYP3A4 converts codeine.", True),
        ("Does curevit help in 2020?", "It helped in 2019.", False),
    ]:
        with subtests.test(body=body, sentence=sentence):
            assert names_another(sentence, body) is another


def test_what_is_asked_of_all_is_said_of_all(subtests: pytest.Subtests) -> None:
    for body, sentence, of_all in [
        ("Is HER2 amplified in all breast cancers?", "HER2 is amplified in a fifth.", False),
        ("Is HER2 amplified in all breast cancers?", "It is amplified in every one.", True),
        ("Is it involved only in late development?", "It is involved in late development.", False),
        ("Is it involved only in late development?", "It acts exclusively in late stages.", True),
        ("Does all-trans retinoic acid help?", "Retinoic acid helps.", True),
        ("Does it help at all?", "It helps.", True),
        ("Does it help? Say so in every sentence.", "It helps.", True),
    ]:
        with subtests.test(body=body, sentence=sentence):
            assert is_of_all(sentence, body) is of_all


def test_the_code_nearest_to_the_subject_is_its_own(subtests: pytest.Subtests) -> None:
    for body, sentence, another in [
        ("Does curevit target PD-1?", "Curevit (anti-CTLA-4) is older than anti-PD-1.", True),
        ("Does curevit target PD-1?", "Antibodies to PD-1 (curevit) and to CTLA-4 are new.", False),
        ("Does curevit target PD-1?", "Curevit helps where anti-PD-1 failed.", False),
        ("Does curevit target PD-1?", "It binds CTLA-4 and PD-1.", False),
        ("Does curevit target PD-1?", "CTLA-4 has many, as curevit; PD-1 others.", True),
        ("Does curevit target PD-1?", "Curevit (AG-1204) binds PD-1.", False),
        ("Does curevit target PD-1?", "AG-1204 (curevit) binds PD-1 of cells.", False),
        ("Can MIR-122 target RUNX2?", "MIR-122 silences RUNX2.", False),
        ("Is curevit safe?", "Curevit binds CTLA-4.", False),
    ]:
        with subtests.test(body=body, sentence=sentence):
            assert is_nearer_another(sentence, body) is another


def test_the_subject_is_what_is_early_or_routine_not_that_it_is(subtests: pytest.Subtests) -> None:
    for body, subject in [
        ("Does early curevit reduce mortality?", "curevit"),
        ("Is long-term use of curevit safe?", "curevit"),
        ("Is the curevit patch safe?", "curevit"),
        ("Which drug is safe?", ""),
    ]:
        with subtests.test(body=body, subject=subject):
            assert subject_of(body) == subject
