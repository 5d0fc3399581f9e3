from __future__ import annotations

import pytest

from serve.support.read_harm import (
    affirms_harm,
    allays,
    denies,
    harm_asked,
    warns,
    without_allaying,
)

MINDED = "Can I take Curevit while I breastfeed?"


def test_a_risk_warns_unless_it_is_denied_or_relieved(subtests: pytest.Subtests) -> None:
    for sentence, of_risks, expected in [
        ("Curevit may expose the infant to a risk of adverse events.", True, True),
        ("Curevit may expose the infant to a risk of adverse events.", False, False),
        ("Curevit reduced the risk of mastitis.", True, False),
        ("Curevit was not linked to adverse events.", True, False),
        ("Curevit is contraindicated in nursing mothers.", False, True),
        ("Curevit should not be used by nursing mothers.", False, True),
    ]:
        with subtests.test(sentence=sentence, of_risks=of_risks):
            assert warns(sentence, MINDED, of_risks=of_risks) is expected


def test_harm_that_is_asked_about_is_affirmed_by_harm(subtests: pytest.Subtests) -> None:
    for question, text, affirmed in [
        ("Does curevit cause lung damage?", "Curevit often brings fatal lung toxicity.", True),
        ("Does curevit cause lung damage?", "Curevit is limited by its adverse effects.", True),
        ("Does curevit cause lung damage?", "No lung toxicity was seen with curevit.", False),
        ("Does curevit cause lung damage?", "Curevit prevents damage to the lung.", False),
        ("Was curevit worse than placebo?", "Patients on curevit worsened.", True),
        ("Does curevit cause seizures?", "Seizures followed curevit.", True),
        ("Does curevit cause seizures?", "Curevit is toxic to fish.", False),
        ("Are people with cancer harmed by curevit?", "It is safe in people with cancer.", False),
        ("Is curevit effective for lung cancer?", "Patients with lung cancer worsened.", False),
        ("Does curevit not cause lung damage?", "Curevit brings lung toxicity.", False),
    ]:
        with subtests.test(question=question, text=text):
            assert affirms_harm(text, harm_asked(question)) is affirmed


def test_a_denial_of_a_benefit_is_no_denial_of_harm() -> None:
    assert denies("Curevit was not linked to malformations.")
    assert not denies("Curevit did not reduce the risk of malformations.")


def test_a_disease_that_a_sentence_only_treats_of_is_not_quoted_as_a_warning() -> None:
    sentence = "Curevit was compared with others for partial seizures."
    assert warns(sentence, MINDED, of_risks=True)
    assert not warns(sentence, MINDED, of_risks=True, of_topics=False)
    assert warns("Curevit is contraindicated.", MINDED, of_risks=True, of_topics=False)


def test_a_denial_of_what_speaks_against_it_is_no_denial_of_leave(
    subtests: pytest.Subtests,
) -> None:
    for sentence, question, only_allays in [
        ("It has not been linked to malformations.", "Is curevit safe in pregnancy?", True),
        ("Levels did not differ.", "Can curevit be taken with juice?", True),
        ("Curevit did not change pain.", "Can curevit change pain?", False),
        ("Curevit did not help.", "Can curevit be taken for pain?", False),
        ("Curevit did not reduce the risk of bleeding.", "Is curevit safe?", False),
        ("Curevit did not affect mortality.", "Should curevit be used for zelania?", False),
        ("Curevit harmed the lung.", "Is curevit safe?", False),
    ]:
        with subtests.test(sentence=sentence, question=question):
            assert allays(sentence, question) is only_allays


def test_a_denial_of_harm_is_left_out_where_safety_is_asked(subtests: pytest.Subtests) -> None:
    for text, question, left in [
        ("No malformations were seen. It is safe.", "Is curevit safe?", "It is safe."),
        ("It did not reduce harm. It failed.", "Is curevit safe?", "as it was"),
        ("No malformations were seen.", "Does curevit help?", "as it was"),
        ("No malformations were seen.", "Is curevit safe, without malformations?", "as it was"),
    ]:
        with subtests.test(text=text, question=question):
            found = without_allaying(text, question)
            assert found.strip() == (text if left == "as it was" else left)
            assert len(found) == len(text)
