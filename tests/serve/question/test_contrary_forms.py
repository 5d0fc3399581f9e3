from __future__ import annotations

import pytest

from serve.question.contrary_forms import contrary_forms


def test_contrary_forms_contain_the_opposite_and_the_negation(subtests: pytest.Subtests) -> None:
    for claim, form in [
        ("Metformin reduces mortality.", "Metformin increases mortality."),
        ("Aspirin is safe in pregnancy.", "Aspirin is harmful in pregnancy."),
        ("Insulin Increased weight.", "Insulin decreased weight."),
        ("Rest is improving gait.", "Rest is worsening gait."),
        ("Aspirin is safe in pregnancy.", "Aspirin is not safe in pregnancy."),
        ("Statins do not prevent dementia.", "Statins prevent dementia."),
        ("Warfarin is not a substrate.", "Warfarin is a substrate."),
    ]:
        with subtests.test(claim=claim, form=form):
            assert form in contrary_forms(claim)


def test_a_negated_claim_has_only_its_affirmed_form() -> None:
    assert contrary_forms("Statins do not prevent dementia.") == ["Statins prevent dementia."]


def test_a_claim_without_opposite_or_copula_gets_words_of_negative_findings() -> None:
    (form,) = contrary_forms("Metformin binds AMPK.")
    assert form.startswith("Metformin binds AMPK no effect")


def test_contrary_forms_exclude_the_claim() -> None:
    claim = "Aspirin is safe in pregnancy."
    assert claim not in contrary_forms(claim)
