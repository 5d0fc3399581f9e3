from __future__ import annotations

import pytest

from serve.question.stated_plainly import is_stated_plainly


def test_a_sentence_with_every_word_of_the_question_states_it(subtests: pytest.Subtests) -> None:
    for text, question in [
        ("Zelania is a rare motility disorder of the gut.", "Is zelania a motility disorder?"),
        (
            "Zelania is an esophageal disorder with failing relaxation.",
            "Is zelania a disorder of the oesophagus?",
        ),
        ("Two (CAR) T cell therapies (Abcarta, Defcarta) came.", "Is Abcarta a CAR-T therapy?"),
        ("Older words. Curevit binds CD38.", "Does curevit bind CD38?"),
        ("Curevit is an inhibitor.", "Is curevit a type of inhibitor?"),
    ]:
        with subtests.test(text=text, question=question):
            assert is_stated_plainly(text, question)


def test_what_denies_doubts_or_lacks_a_word_does_not(subtests: pytest.Subtests) -> None:
    for text, question in [
        ("Curevit does not bind CD38.", "Does curevit bind CD38?"),
        ("We asked whether curevit binds CD38.", "Does curevit bind CD38?"),
        ("Unlike others, curevit binds CD38.", "Does curevit bind CD38?"),
        ("Curevit binds CD20.", "Does curevit bind CD38?"),
        ("Curevit came. CD38 binds others.", "Does curevit bind CD38?"),
        ("Curevit is unsafe in children.", "Is curevit safe in children?"),
        ("Curevit increases mortality.", "Does curevit decrease mortality?"),
        ("The abnormality lies on chromosome 17.", "Is the abnormality on chromosome 1?"),
        ("Curevit was used.", "Is curevit used?"),
    ]:
        with subtests.test(text=text, question=question):
            assert not is_stated_plainly(text, question)
