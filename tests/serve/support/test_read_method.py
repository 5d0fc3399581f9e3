from __future__ import annotations

import pytest

from serve.support.read_method import (
    asks_of_method,
    is_silent,
    is_statement,
    only_found,
    only_names,
    only_prepares,
    only_tells_method,
)


def test_what_was_done_and_what_is_open_is_no_finding(subtests: pytest.Subtests) -> None:
    for sentence in [
        "We randomised 100 travellers with jet lag to melatonin or placebo.",
        "Participants were randomly assigned to sulforaphane or placebo for 12 weeks.",
        "Patients with renal failure received ketorolac.",
        "We will enrol 110 children with autism.",
        "This article describes the design of a study in which patients receive naltrexone.",
        "The association of coffee with bladder cancer was examined in 30,000 women.",
        "The efficacy of melatonin for jet lag remains controversial.",
        "Several studies gave conflicting results on coffee and bladder cancer.",
        "Larger trials of melatonin for jet lag are needed.",
        "A trial of melatonin for jet lag is under way.",
    ]:
        with subtests.test(sentence=sentence):
            assert only_tells_method(sentence)


def test_a_finding_among_what_was_done_counts(subtests: pytest.Subtests) -> None:
    for sentence in [
        "We randomised 100 travellers, and melatonin reduced jet lag.",
        "Patients who received melatonin recovered sooner.",
        "We identified curevit as a cause of zelania.",
        "Zelania occurred in 14% of patients who were treated with curevit.",
        "In this trial, which was conducted in 30 centres, curevit was not effective.",
        "Curevit is widely used for zelania.",
        "The mechanism by which curevit reduces zelania remains unclear.",
        "Melatonin causes drowsiness.",
        "We compared curevit with placebo: curevit was superior.",
    ]:
        with subtests.test(sentence=sentence):
            assert not only_tells_method(sentence)


def test_an_aim_and_what_was_done_prepare(subtests: pytest.Subtests) -> None:
    for sentence, prepares in [
        ("The purpose of the present study was to determine the effect of curevit.", True),
        ("To examine what causes zelania, we have created a mouse line.", True),
        ("An experimental study was carried out in rats with zelania.", True),
        ("To examine what causes zelania, we created mice, which recovered.", False),
        ("The cause of zelania is unknown.", False),
        ("Curevit is the usual treatment.", False),
    ]:
        with subtests.test(sentence=sentence, prepares=prepares):
            assert only_prepares(sentence) is prepares


def test_what_was_found_keeps_its_place() -> None:
    text = "We enrolled 100 adults. Curevit improved sleep. Further trials are needed."
    found = only_found(text)
    assert found.strip() == "Curevit improved sleep."
    assert (len(found), found.index("Curevit")) == (len(text), text.index("Curevit"))


def test_a_title_that_only_names_its_subject_says_nothing_of_it(subtests: pytest.Subtests) -> None:
    for title in [
        "Valproate in pregnancy.",
        "Safety of valproate in pregnancy: a systematic review.",
        "Efficacy and safety of melatonin in patients with jet lag.",
        "Coffee and the risk of bladder cancer.",
        "Association between coffee and bladder cancer: a meta-analysis.",
        "Omega-3 fatty acids for the prevention of atrial fibrillation.",
        "Curcumin to prevent pancreatitis: a randomised trial.",
        "Benefits and harms of statins in the elderly.",
        "Effect of vitamin D on glycemic control.",
        "Impact of surgery on quality of life.",
    ]:
        with subtests.test(title=title):
            assert only_names(title)


def test_a_title_with_a_verb_or_a_finding_says_something(subtests: pytest.Subtests) -> None:
    for title in [
        "Valproate causes birth defects.",
        "Valproate-induced hepatotoxicity.",
        "Birth defects due to valproate.",
        "No benefit of melatonin in jet lag.",
        "Melatonin improves jet lag.",
        "Statins reduce mortality after stroke.",
        "Lack of efficacy of vitamin E in dementia.",
        "Successful treatment of zelania with curevit.",
        "Subdural empyema as a complication of sinusitis.",
        "Dupilumab: a novel treatment for asthma.",
        "Prevention of dementia by statins.",
        "Zelda overcomes the nucleosome barrier.",
        "Adar3 Is Involved in Learning.",
        "Reduced mortality under tranexamic acid.",
    ]:
        with subtests.test(title=title):
            assert not only_names(title)


def test_whether_a_thing_is_used_or_there_is_answered_by_what_was_done(
    subtests: pytest.Subtests,
) -> None:
    for question, expected in [
        ("Is methotrexate used for rheumatoid arthritis?", True),
        ("Has saracatinib been tested in clinical trials?", True),
        ("Is there a vaccine for rotavirus?", True),
        ("Are there tools for reviewing variant calls?", True),
        ("Is there an association between coffee and cancer?", False),
        ("Is there an increased risk of meningioma in survivors?", False),
        ("Is valproate safe in pregnancy?", False),
        ("Can ibuprofen be used in pregnancy?", False),
        ("May curevit be given to children?", False),
        ("Can pazopanib be used for treatment of zelania?", True),
        ("Does melatonin help in jet lag?", False),
    ]:
        with subtests.test(question=question, expected=expected):
            assert asks_of_method(question) is expected


def test_a_title_with_a_verb_of_its_own_is_a_statement(subtests: pytest.Subtests) -> None:
    for title, states in [
        ("Sodium bicarbonate alleviates penile pain.", True),
        ("Warfarin-induced calcification is accelerated by growth.", True),
        ("Pentoxifylline does not inhibit hyperemia.", True),
        ("Causes of zelania.", False),
        ("Increases in mortality under curevit.", False),
        ("Curevit-induced zelania: a novel finding.", False),
    ]:
        with subtests.test(title=title, states=states):
            assert is_statement(title) is states


def test_of_an_effect_only_what_speaks_of_one_is_an_answer(subtests: pytest.Subtests) -> None:
    for sentence, question, silent in [
        ("Curevit is a protein.", "Is curevit effective in zelania?", True),
        ("Curevit is a protein.", "Is curevit a protein?", False),
        ("Curevit helped six of nine.", "Is curevit effective in zelania?", False),
        ("Curevit is the mainstay of treatment.", "Is curevit effective in zelania?", False),
        ("Curevit helped. It was given daily.", "Does curevit cause zelania?", True),
        ("Curevit was given daily. It helped.", "Does curevit cause zelania?", False),
        ("Curevit was given daily.", "Is curevit used in zelania?", False),
    ]:
        with subtests.test(sentence=sentence, question=question):
            assert is_silent(sentence, question) is silent
