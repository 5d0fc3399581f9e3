from __future__ import annotations

from serve.question.contrary_forms import contrary_forms


def test_contrary_form_has_the_claim_and_words_of_negative_findings() -> None:
    (form,) = contrary_forms("Metformin binds AMPK.")
    assert form.startswith("Metformin binds AMPK no effect")
