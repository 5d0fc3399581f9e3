from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.records import Entity
from serve.answer.names.rank_names import rank_names
from tests.serve.answer.test_extract_exact import read


def know_nothing(text: str) -> Sequence[Entity]:
    return []


def named(body: str, text: str, names: str) -> list[str]:
    found = rank_names(body, read(text, names=names), know_nothing)
    return sorted(name.names[0] for name in found)


def test_a_part_of_a_long_form_is_the_whole_of_it() -> None:
    text = "The virus enters by zelin-converting enzyme 2 (ZCE2), which cells of 2 kinds have."
    found = rank_names(
        "Which receptor has virus 2?", read(text, names="zelin-converting"), know_nothing
    )
    assert found[0].names == ("zelin-converting enzyme 2",)


def test_a_drug_for_something_else_is_no_answer_where_the_sentence_tells_them_apart() -> None:
    text = "In use are alfamab and betamab for zelania, gammamab for migraine."
    names = "alfamab|betamab|gammamab"
    assert named("Which drugs treat zelania?", text, names) == ["alfamab", "betamab"]
    text = "Gammamab is given for three months."
    assert named("Which drugs treat zelania?", text, "gammamab") == ["Gammamab"]


def test_what_measures_a_symptom_and_letters_that_nobody_explains_are_none(
    subtests: pytest.Subtests,
) -> None:
    for text, names in [
        ("They were assessed by the Hoehn and Yahr Scale.", "Hoehn"),
        ("The Zelania Rating Scale (ZRS) was worse; ZRS and tremor rose.", "ZRS"),
        ("All had SCOPA and tremor.", "SCOPA"),
        ("Statins hold HMG-CoA reductase back.", "HMG-CoA reductase"),
    ]:
        with subtests.test(text=text, names=names):
            assert (
                named("What are the symptoms of zelania?", f"{text} Tremor was seen.", names) == []
            )
            assert named(
                "What are the symptoms of zelania?", f"{text} Tremor was seen.", "Tremor was"
            )


def test_the_long_form_of_what_the_question_names_is_no_answer_unless_it_asks_for_a_name() -> None:
    text = "Zelin-like death protein (ZLD) is held by curevit."
    names = "Zelin-like death protein|curevit"
    assert named("Which inhibitors target ZLD?", text, names) == ["curevit"]
    assert "Zelin-like death protein" in named("What does ZLD stand for?", text, names)


def test_a_name_of_a_sentence_that_is_not_on_the_aspect_counts_half() -> None:
    passages = read("Zelania is seen with gout.", names="gout")
    [caused] = rank_names("What causes zelania?", passages, know_nothing)
    [seen] = rank_names("What is zelania seen with?", passages, know_nothing)
    assert caused.score == seen.score / 2


def test_a_sections_label_is_no_part_of_a_name() -> None:
    text = "BACKGROUND Sweat tests find zelania. METHODS AND AIMS Skin tests were done."
    found = named("Which tests find zelania?", text, "BACKGROUND Sweat tests|METHODS .* tests")
    assert found == ["Skin tests", "Sweat tests"]


def test_a_name_that_bears_the_noun_which_is_asked_for_counts_twice() -> None:
    passages = read("Zelania is seen with the GAA repeat.", names="GAA repeat")
    [repeat] = rank_names("What repeat is seen in zelania?", passages, know_nothing)
    [seen] = rank_names("What factor is seen in zelania?", passages, know_nothing)
    assert repeat.score == 2 * seen.score
