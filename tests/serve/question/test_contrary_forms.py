from __future__ import annotations

import pytest

from serve.question.contrary_forms import (
    affirmed,
    contrary_forms,
    opposed,
    opposites,
    points_alike,
)


def test_a_word_is_turned_round_in_its_own_inflection(subtests: pytest.Subtests) -> None:
    for word, turned in [
        ("increases", "decreases"),
        ("Increased", "decreased"),
        ("reducing", "increasing"),
        ("safe", "harmful"),
        ("upregulated", "downregulated"),
        ("improves", "worsens"),
        ("effective", "ineffective"),
        ("resistant", "sensitive"),
    ]:
        with subtests.test(word=word, turned=turned):
            assert opposites(word)[0] == turned


def test_a_word_without_an_opposite_has_none() -> None:
    assert opposites("metformin") == ()


def test_contrary_forms_hold_the_opposite_and_the_negation(subtests: pytest.Subtests) -> None:
    for claim, form in [
        ("Metformin reduces mortality.", "Metformin increases mortality."),
        ("Aspirin is safe in pregnancy.", "Aspirin is harmful in pregnancy."),
        ("Aspirin is safe in pregnancy.", "Aspirin is not safe in pregnancy."),
        ("Statins do not prevent dementia.", "Statins prevent dementia."),
        ("Warfarin is not a substrate.", "Warfarin is a substrate."),
    ]:
        with subtests.test(claim=claim, form=form):
            assert form in contrary_forms(claim)


def test_a_denial_is_only_affirmed() -> None:
    assert contrary_forms("Statins do not prevent dementia.") == ["Statins prevent dementia."]


def test_a_claim_with_neither_is_asked_with_the_words_of_a_denial() -> None:
    (form,) = contrary_forms("Metformin binds AMPK.")
    assert form.startswith("Metformin binds AMPK no effect")


def test_a_claim_is_no_contrary_form_of_itself() -> None:
    claim = "Aspirin is safe in pregnancy."
    assert claim not in contrary_forms(claim)


def test_no_more_forms_than_asked_for() -> None:
    assert len(contrary_forms("Aspirin is safe in pregnancy.", 1)) == 1


def test_a_sentence_with_the_opposite_word_is_opposed() -> None:
    assert opposed("Aspirin is safe in pregnancy.", "Aspirin was harmful in pregnancy.") >= 0.5


def test_who_activates_is_no_inhibitor(subtests: pytest.Subtests) -> None:
    for claim, sentence, says_opposite in [
        ("Is curevit an activator of PP2A?", "PP2A inhibition with curevit was seen.", True),
        ("Is curevit an activator of PP2A?", "Curevit activates PP2A.", False),
        ("Is curevit an inhibitor of AMPK?", "Curevit activates AMPK.", True),
        ("Is curevit an inhibitor of AMPK?", "Curevit inhibits activation of AMPK.", False),
    ]:
        with subtests.test(claim=claim, sentence=sentence):
            assert bool(opposed(claim, sentence)) is says_opposite


def test_other_sentences_are_not(subtests: pytest.Subtests) -> None:
    for sentence in [
        "Aspirin is safe in pregnancy.",
        "Alcohol was harmful to sailors.",
        "Aspirin in pregnancy may be safe or harmful.",
        "Aspirin was given in pregnancy.",
    ]:
        with subtests.test(sentence=sentence):
            assert opposed("Aspirin is safe in pregnancy.", sentence) == 0.0


def test_a_sentence_points_as_the_claim_does_by_its_words(subtests: pytest.Subtests) -> None:
    for claim, sentence, alike in [
        ("Does metformin activate AMPK?", "Metformin activates AMPK in the liver.", True),
        ("Does metformin activate AMPK?", "Metformin acts on AMPK in the liver.", False),
        ("Does metformin activate AMPK?", "It activates AMPK or suppresses it.", False),
        ("Does dexamethasone reduce mortality?", "Dexamethasone lowered mortality.", True),
        ("Does dexamethasone reduce mortality?", "Dexamethasone raised mortality.", False),
        ("Is aspirin safe?", "Aspirin was safe.", True),
        ("Does curevit inhibit IDH1?", "Curevit is an IDH1 inhibitor.", True),
        ("Is curevit an IDH1 inhibitor?", "IDH1 inhibition by curevit helps.", True),
        ("Is curevit an IDH1 inhibitor?", "Curevit is an IDH1 activator.", False),
        ("Does metformin activate AMPK or inhibit mTOR?", "Metformin activates AMPK.", True),
        ("Is MYC an oncogene?", "MYC is an oncogene.", False),
        ("Does tea increase the risk?", "Tea increases the risk, and the risk decreases.", True),
        ("Does tea reduce nausea?", "Tea reduces nausea without increasing pain.", True),
        ("Does tea reduce nausea?", "Tea reduces pain, but increases nausea.", False),
    ]:
        with subtests.test(claim=claim, sentence=sentence):
            assert points_alike(claim, sentence) is alike


def test_a_question_that_denies_is_affirmed_unless_it_may_mean_either(
    subtests: pytest.Subtests,
) -> None:
    for question, affirmation in [
        ("Is it true that curevit does not help adults?", "Is it true that curevit help adults?"),
        (
            "Unlike DNA, RNA is not methylated, yes or no?",
            "Unlike DNA, RNA is methylated, yes or no?",
        ),
        ("Does curevit not help adults?", ""),
        ("Can patients who do not respond take curevit?", ""),
        ("Is it known that those who do not respond get curevit?", ""),
        ("Does curevit help adults?", ""),
        ("Does curevit fail to help adults?", "Does curevit help adults?"),
        ("Does curevit help adults who fail to respond?", ""),
        ("Is curevit entirely free of side effects?", "Is curevit associated with side effects?"),
    ]:
        with subtests.test(question=question, affirmation=affirmation):
            assert affirmed(question) == affirmation
