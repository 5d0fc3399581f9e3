"""What becomes of a model's sentences that no evidence supports: `answer.check`."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from cluster.answers import NOT_ENOUGH, Check, Evidence, Guess, Question, Sentence
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.ask_model import WriterLimits
from serve.answer.write_answer import AnswerWriter, WrittenAnswer
from tests.serve.answer.test_write_answer import Script, encode, names, recognise
from tests.serve.answering import answer as answered
from tests.serve.answering import evidence, passage

from tests.serve.answering import CALIBRATION, WordReader  # isort: skip

SAID = "Metformin lowers blood glucose by 30% in adults."
OWN = "Aspirin prevents colorectal cancer."
LINK = "Aspirin helps, see www.example.org for more."


def write(
    check: Check, *replies: str, weigh: int = 0, kind: Literal["summary", "factoid"] = "summary"
) -> WrittenAnswer:
    prompts = "udine" if weigh else ""
    style = AnswerSettings(check=check, weigh=weigh, prompts=prompts, ideal_from="model")
    writer = AnswerWriter(
        Script(*replies),
        encode,
        None,
        recognise,
        WordReader(),
        CALIBRATION,
        WriterLimits(deadline_s=60),
    )
    items = [*evidence(SAID), Evidence(passage("Cats sleep for most of the day.", 7))]
    return asyncio.run(
        writer.write(Question("q", "Which drug lowers glucose?", kind), items, style)
    )


def told(answer: WrittenAnswer) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(s.text, s.pmids, s.unsupported) for s in answer.ideal]


def test_dropped_ones_are_gone() -> None:
    answer = write("drop", f"{OWN} {SAID}")
    assert told(answer) == [(SAID, (1,), False)]


def test_marked_ones_stand_in_their_place_without_pmids() -> None:
    answer = write("mark", f"{OWN} {SAID}")
    assert told(answer) == [(OWN, (), True), (SAID, (1,), False)]
    assert (answer.verdict, answer.stance_on) == ("answered", SAID)


def test_without_a_supported_sentence_the_marked_ones_are_no_answer() -> None:
    answer = write("mark", OWN)
    assert (answer.origin, answer.degraded) == (
        "extractive",
        ("llm: nothing usable, extractive answer",),
    )
    assert OWN not in {sentence.text for sentence in answer.ideal}


def test_unchecked_ones_are_an_answer_by_themselves_and_still_bear_the_mark() -> None:
    answer = write("off", OWN)
    assert told(answer) == [(OWN, (), True)]
    assert (answer.origin, answer.degraded, answer.stance_on) == ("generated", (), OWN)


@pytest.mark.parametrize(("check", "pmids"), [("mark", ()), ("off", (7,))])
def test_the_pmids_that_a_model_cites_stay_where_nothing_is_checked(
    check: Check, pmids: tuple[int, ...]
) -> None:
    said = f"Aspirin prevents colorectal cancer [7, 99]. {SAID.removesuffix('.')} [1]."
    answer = write(check, said, weigh=2)
    assert told(answer) == [(OWN, pmids, True), (SAID, (1,), False)]


@pytest.mark.parametrize("check", ["drop", "mark", "off"])
def test_a_sentence_with_a_link_is_always_dropped(check: Check) -> None:
    answer = write(check, f"{SAID} {LINK}")
    assert told(answer) == [(SAID, (1,), False)]


@pytest.mark.parametrize("check", ["drop", "mark"])
def test_the_exact_answer_does_not_rest_on_a_marked_sentence(check: Check) -> None:
    """The model names what its unsupported sentence alone names."""
    answer = write(check, f"{OWN} {SAID}", names("Aspirin", "Metformin"), kind="factoid")
    assert answer.exact == [["Metformin"]]


@pytest.mark.parametrize(("check", "kept"), [("drop", 1), ("mark", 1), ("off", 2)])
def test_formats_without_marks_leave_the_marked_ones_out(check: Check, kept: int) -> None:
    ideal = (Sentence(SAID, (1,), 0.9), Sentence(OWN, (), 0.0, unsupported=True))
    found = answered(ideal=ideal, exact="yes", check=check)
    assert found.choice == Guess(ideal[:kept], "yes")


def test_a_bare_off_of_yaml_is_off() -> None:
    assert AnswerSettings.model_validate({"check": False}).check == "off"
    assert AnswerSettings().check == "drop"
    with pytest.raises(ValueError, match="'drop', 'mark' or 'off'"):
        AnswerSettings.model_validate({"check": True})


def test_the_verdict_is_the_same_marked_or_dropped() -> None:
    for said in (OWN, f"{OWN} {SAID}", SAID):
        one, other = write("drop", said), write("mark", said)
        assert (one.verdict, one.stance_on, one.exact) == (
            other.verdict,
            other.stance_on,
            other.exact,
        )
    assert write("drop", OWN).verdict != NOT_ENOUGH
