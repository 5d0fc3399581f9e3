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


@pytest.mark.parametrize(
    ("sentence", "of_risks", "expected"),
    [
        ("Curevit may expose the infant to a risk of adverse events.", True, True),
        ("Curevit may expose the infant to a risk of adverse events.", False, False),
        ("Curevit reduced the risk of mastitis.", True, False),
        ("Curevit was not linked to adverse events.", True, False),
        ("Curevit is contraindicated in nursing mothers.", False, True),
        ("Curevit should not be used by nursing mothers.", False, True),
    ],
)
def test_a_risk_warns_unless_it_is_denied_or_relieved(
    sentence: str, of_risks: bool, expected: bool
) -> None:
    assert warns(sentence, MINDED, of_risks=of_risks) is expected


@pytest.mark.parametrize(
    ("question", "text", "affirmed"),
    [
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
    ],
)
def test_harm_that_is_asked_about_is_affirmed_by_harm(
    question: str, text: str, affirmed: bool
) -> None:
    assert affirms_harm(text, harm_asked(question)) is affirmed


def test_a_denial_of_a_benefit_is_no_denial_of_harm() -> None:
    assert denies("Curevit was not linked to malformations.")
    assert not denies("Curevit did not reduce the risk of malformations.")


def test_a_disease_that_a_sentence_only_treats_of_is_not_quoted_as_a_warning() -> None:
    sentence = "Curevit was compared with others for partial seizures."
    assert warns(sentence, MINDED, of_risks=True)
    assert not warns(sentence, MINDED, of_risks=True, of_topics=False)
    assert warns("Curevit is contraindicated.", MINDED, of_risks=True, of_topics=False)


@pytest.mark.parametrize(
    ("sentence", "question", "only_allays"),
    [
        ("It has not been linked to malformations.", "Is curevit safe in pregnancy?", True),
        ("Levels did not differ.", "Can curevit be taken with juice?", True),
        ("Curevit did not change pain.", "Can curevit change pain?", False),
        ("Curevit did not help.", "Can curevit be taken for pain?", False),
        ("Curevit did not reduce the risk of bleeding.", "Is curevit safe?", False),
        ("Curevit did not affect mortality.", "Should curevit be used for zelania?", False),
        ("Curevit harmed the lung.", "Is curevit safe?", False),
    ],
)
def test_a_denial_of_what_speaks_against_it_is_no_denial_of_leave(
    sentence: str, question: str, only_allays: bool
) -> None:
    assert allays(sentence, question) is only_allays


@pytest.mark.parametrize(
    ("text", "question", "left"),
    [
        ("No malformations were seen. It is safe.", "Is curevit safe?", "It is safe."),
        ("It did not reduce harm. It failed.", "Is curevit safe?", "as it was"),
        ("No malformations were seen.", "Does curevit help?", "as it was"),
        ("No malformations were seen.", "Is curevit safe, without malformations?", "as it was"),
    ],
)
def test_a_denial_of_harm_is_left_out_where_safety_is_asked(
    text: str, question: str, left: str
) -> None:
    found = without_allaying(text, question)
    assert found.strip() == (text if left == "as it was" else left)
    assert len(found) == len(text)
