from __future__ import annotations

import pytest

from serve.question.asked_aspect import asked_aspect


def test_a_sentence_on_what_is_asked_is_told_from_another(subtests: pytest.Subtests) -> None:
    for question, said, unsaid in [
        (
            "How does curevit act?",
            "Curevit blocks the receptor.",
            "Two patients received curevit.",
        ),
        (
            "How is zelania treated?",
            "Zelania responded to curevit infusions.",
            "Zelania is a rare disorder of the gut.",
        ),
        (
            "What is the treatment of zelania?",
            "Surgery is an option.",
            "Zelania is a rare disorder of the gut.",
        ),
        (
            "How is zelania diagnosed?",
            "A biopsy of the gut is needed.",
            "Zelania is rare in adults.",
        ),
        (
            "How is zelania transmitted?",
            "Ticks spread zelania.",
            "Zelania is caused by a bacterium.",
        ),
        (
            "How is zelania inherited?",
            "Zelania is an autosomal disorder.",
            "Sweat tests find zelania.",
        ),
        (
            "What are the side effects of curevit?",
            "Curevit was well tolerated.",
            "Curevit prolongs survival in zelania.",
        ),
        (
            "What are the symptoms of zelania?",
            "Patients present with fever.",
            "Zelania is studied in mice.",
        ),
        (
            "What is the prognosis of zelania?",
            "Five-year survival is 20%.",
            "Zelania affects the gut.",
        ),
        (
            "How can zelania be prevented?",
            "Vaccination protects children.",
            "Zelania is frequent in children.",
        ),
        (
            "What causes zelania?",
            "Zelania results from a mutation of ZEL1.",
            "Zelania is a rare disorder of the gut.",
        ),
    ]:
        with subtests.test(question=question, said=said):
            aspect = asked_aspect(question)
            assert aspect is not None
            assert aspect.search(said)
            assert not aspect.search(unsaid)


def test_who_asks_what_a_thing_is_asks_for_no_aspect(subtests: pytest.Subtests) -> None:
    for question in [
        "What is zelania?",
        "Describe curevit.",
        "What is known about zelania?",
        "Which genes?",
    ]:
        with subtests.test(question=question):
            assert asked_aspect(question) is None
