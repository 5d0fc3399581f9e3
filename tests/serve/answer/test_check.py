"""Tests of `answer.check`: what happens to sentences that no evidence supports."""

from __future__ import annotations

from typing import Literal

import pytest

from cluster.answers import NOT_ENOUGH, Check, Evidence, Guess, Sentence
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.write_answer import WrittenAnswer
from tests.serve.answer import writing
from tests.serve.answering import answer as answered
from tests.serve.answering import evidence, passage
from tests.serve.scripted_model import Script

SAID = "Metformin lowers blood glucose by 30% in adults."
OWN = "Aspirin prevents colorectal cancer."
LINK = "Aspirin helps, see www.example.org for more."


def write(
    check: Check, *replies: str, weigh: int = 0, kind: Literal["summary", "factoid"] = "summary"
) -> WrittenAnswer:
    prompts = "udine" if weigh else ""
    style = AnswerSettings(check=check, weigh=weigh, prompts=prompts, ideal_from="model")
    items = [*evidence(SAID), Evidence(passage("Cats sleep for most of the day.", 7))]
    return writing.write(Script(*replies), kind, items, style=style)


Marked = tuple[str, tuple[int, ...], bool]


def sentences_of(answer: WrittenAnswer) -> list[Marked]:
    return [(s.text, s.pmids, s.unsupported) for s in answer.ideal]


@pytest.mark.parametrize(
    ("check", "said", "kept", "stance_on"),
    [
        ("drop", f"{OWN} {SAID}", [(SAID, (1,), False)], SAID),
        ("mark", f"{OWN} {SAID}", [(OWN, (), True), (SAID, (1,), False)], SAID),
        ("off", OWN, [(OWN, (), True)], OWN),
        # A link is always dropped.
        ("drop", f"{SAID} {LINK}", [(SAID, (1,), False)], SAID),
        ("mark", f"{SAID} {LINK}", [(SAID, (1,), False)], SAID),
        ("off", f"{SAID} {LINK}", [(SAID, (1,), False)], SAID),
    ],
)
def test_check_decides_about_unsupported_sentences(
    check: Check, said: str, kept: list[Marked], stance_on: str
) -> None:
    answer = write(check, said)
    assert sentences_of(answer) == kept
    assert (answer.verdict, answer.stance_on) == ("answered", stance_on)
    assert (answer.origin, answer.degraded) == ("generated", ())


def test_mark_without_supported_sentence_falls_back() -> None:
    answer = write("mark", OWN)
    lost = ("llm: nothing usable, extractive answer",)
    assert (answer.origin, answer.degraded) == ("extractive", lost)
    assert OWN not in {sentence.text for sentence in answer.ideal}


@pytest.mark.parametrize(("check", "pmids"), [("mark", ()), ("off", (7,))])
def test_off_keeps_the_pmids_that_the_model_cites(check: Check, pmids: tuple[int, ...]) -> None:
    said = f"Aspirin prevents colorectal cancer [7, 99]. {SAID.removesuffix('.')} [1]."
    answer = write(check, said, weigh=2)
    assert sentences_of(answer) == [(OWN, pmids, True), (SAID, (1,), False)]


@pytest.mark.parametrize("check", ["drop", "mark"])
def test_exact_answer_ignores_marked_sentences(check: Check) -> None:
    """The unsupported sentence of the model names something that no other sentence names."""
    answer = write(check, f"{OWN} {SAID}", writing.names("Aspirin", "Metformin"), kind="factoid")
    assert answer.exact == [["Metformin"]]


@pytest.mark.parametrize(("check", "kept"), [("drop", 1), ("mark", 1), ("off", 2)])
def test_choice_leaves_marked_sentences_out(check: Check, kept: int) -> None:
    ideal = (Sentence(SAID, (1,), 0.9), Sentence(OWN, (), 0.0, unsupported=True))
    found = answered(ideal=ideal, exact="yes", check=check)
    assert found.choice == Guess(ideal[:kept], "yes")


def test_check_accepts_yaml_false_as_off() -> None:
    assert AnswerSettings.model_validate({"check": False}).check == "off"
    assert AnswerSettings().check == "drop"
    with pytest.raises(ValueError, match="'drop', 'mark' or 'off'"):
        AnswerSettings.model_validate({"check": True})


def test_verdict_is_equal_for_mark_and_drop() -> None:
    for said in (OWN, f"{OWN} {SAID}", SAID):
        one, other = (
            (found.verdict, found.stance_on, found.exact)
            for found in (write("drop", said), write("mark", said))
        )
        assert one == other
    assert write("drop", OWN).verdict != NOT_ENOUGH
