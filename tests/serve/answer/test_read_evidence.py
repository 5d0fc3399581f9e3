from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cluster.models.readings import Reading, ScoredSpan
from serve.answer.read_evidence import (
    RememberingReader,
    answering,
    read_evidence,
    read_texts,
    spoken_by,
)
from tests.serve.answering import evidence


class Counting:
    def __init__(self) -> None:
        self.read_texts: list[str] = []

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        self.read_texts += passages
        return [Reading(len(text) / 100, 0.0, 0.0, 1.0) for text in passages]


def test_a_passage_is_read_once_a_question() -> None:
    counting = Counting()
    reader = RememberingReader(counting)
    first = reader.read("why?", ["one", "three", "one"])
    assert [reading.relevance for reading in first] == [0.03, 0.05, 0.03]
    assert reader.read("why?", ["three", "seven or so"])[0] == first[1]
    assert counting.read_texts == ["one", "three", "seven or so"]
    reader.read("how?", ["one"])
    assert counting.read_texts[-1] == "one"


def test_only_the_last_readings_are_kept_and_a_long_request_is_answered_whole() -> None:
    counting = Counting()
    reader = RememberingReader(counting, kept=2)
    texts = ["a", "bb", "ccc", "dddd"]
    assert [r.relevance for r in reader.read("?", texts)] == [0.01, 0.02, 0.03, 0.04]
    reader.read("?", ["ccc", "dddd"])
    assert counting.read_texts == texts


def test_a_passage_answers_as_far_as_it_is_relevant_and_says_the_answer() -> None:
    spans = (ScoredSpan(0, 5, 0.16), ScoredSpan(6, 9, 0.25))
    assert answering(Reading(1.0, 0, 0, 1, (), spans)) == pytest.approx(0.5)
    assert answering(Reading(0.25, 0, 0, 1, (), spans)) == pytest.approx(0.25)
    assert answering(Reading(0.9, 0, 0, 1)) == 0.0


class Sentimental:
    """Takes what is bad for a no, as the reader does, and knows no negated question."""

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        bad = ["toxic" in text or " not " in text for text in passages]
        return [Reading(0.9, 0.1, 0.9, 0.0) if b else Reading(0.9, 0.9, 0.1, 0.0) for b in bad]


def test_harm_and_negated_questions_are_not_read_the_wrong_way_round(
    subtests: pytest.Subtests,
) -> None:
    for question, text, says_yes in [
        ("Does curevit cause lung damage?", "Curevit is toxic to the lung.", True),
        ("Does curevit cause lung damage?", "Curevit is not toxic to the lung.", False),
        ("Does curevit help the lung?", "Curevit is toxic to the lung.", False),
        ("Is it true that curevit does not help?", "Curevit did not help.", True),
        ("Is it true that curevit does not help?", "Curevit helped.", False),
    ]:
        with subtests.test(question=question, text=text):
            [reading] = read_texts(question, [text], Sentimental())
            assert (reading.yes > reading.no) is says_yes


def test_what_says_all_that_is_asked_in_plain_words_is_no_denial() -> None:
    class Denying:
        def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
            return [Reading(0.9, 0.1, 0.8, 0.1) for _ in passages]

    stated, other = read_texts(
        "Is zelania a motility disorder?",
        ["Zelania is a motility disorder with failed relaxation.", "Zelania is a rash."],
        Denying(),
    )
    assert (stated.yes, stated.no, stated.silent) == (0.1, 0.0, pytest.approx(0.9))
    assert other.no == 0.8


class Literal:
    """Takes each text with "helps" for a yes, as the reader does what is only aimed at."""

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        yes = [Reading(0.9, 0.8, 0.1, 0.1), Reading(0.3, 0.0, 0.0, 1.0)]
        return [yes["helps" not in text] for text in passages]


def test_what_is_only_aimed_at_takes_no_side_and_stays_relevant(subtests: pytest.Subtests) -> None:
    for text, weight in [
        ("Curevit helps.", 0.72),
        ("We tested whether curevit helps.", 0.0),
        ("To evaluate how curevit helps.", 0.0),
        ("Does curevit help? Curevit helps.", 0.72),
    ]:
        with subtests.test(text=text, weight=weight):
            items = evidence(text)
            [passage] = read_evidence("Does curevit help?", items, Literal(), sides=True)
            assert passage.weight("yes") == pytest.approx(weight)
            assert (passage.reading.relevance, passage.weight("no") <= 0.1) == (0.9, True)
            [passage] = read_evidence("What does curevit do?", items, Literal())
            assert passage.reading == Literal().read("", [text])[0]
            assert spoken_by(text, "Does curevit help?", Literal()) == ("yes" if weight else None)


def test_what_was_done_and_a_title_that_only_names_take_no_side(subtests: pytest.Subtests) -> None:
    for question, text, section, weight in [
        ("Does curevit help?", "Curevit was studied. Curevit helped.", "abstract", 0.72),
        ("Does curevit help?", "Curevit was studied.", "abstract", 0.0),
        ("Is curevit used?", "Curevit was studied.", "abstract", 0.72),
        ("Does curevit help?", "Curevit in zelania.", "title", 0.0),
        ("Does curevit help?", "Curevit improves zelania.", "title", 0.72),
        ("Does curevit help?", "Curevit in zelania.", "abstract", 0.72),
    ]:
        with subtests.test(question=question, text=text):

            class Hopeful:
                """Takes whatever names the drug for a yes."""

                def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
                    yes = [Reading(0.9, 0.8, 0.1, 0.1), Reading(0.3, 0.0, 0.0, 1.0)]
                    return [yes["Curevit" not in text] for text in passages]

            [item] = evidence(text)
            item = replace(item, passage=replace(item.passage, section=section))
            [passage] = read_evidence(question, [item], Hopeful(), sides=True)
            assert passage.weight("yes") == pytest.approx(weight)
            assert passage.reading.relevance == 0.9


def test_a_denial_of_harm_is_no_denial_of_safety() -> None:
    class Shy:
        """Takes each "no" for one, and silence for a little of it."""

        def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
            no = [Reading(0.9, 0.1, 0.9, 0.0), Reading(0.9, 0.9, 0.1, 0.0)]
            return [no["No " not in text] for text in passages]

    text = "No malformations were seen. Curevit is safe."
    [reading] = read_texts("Is curevit safe?", [text], Shy())
    assert reading.yes > reading.no
    [reading] = read_texts("Does curevit help?", [text], Shy())
    assert reading.yes < reading.no
