from __future__ import annotations

from dataclasses import replace
from unittest.mock import AsyncMock

import pytest

from cluster.answers import Guess, Question, Sentence
from cluster.index.filters.filters import NO_FILTERS, Filters
from serve.answer.write_answer import WrittenAnswer
from serve.pipeline.present_answer import positions_of, stated_fields, with_stances
from serve.references.documents.number_answer import cited_pmids
from serve.wording.verdict_words import UNRELATED, nearest_words, verdict_words
from tests.serve.answering import evidence
from tests.serve.service import CORPUS
from tests.serve.small_graph import make_answerer, reply_of

QUESTION = Question("q", "Does metformin activate AMPK?", "yesno")
SAID = (Sentence("Metformin activates AMPK.", (1,), 0.9),)
WRITTEN = WrittenAnswer(
    SAID,
    "yes",
    "extractive",
    guesses="yes",
    supported=SAID,
    stances={"1:abstract:0-9": "support", "2:abstract:0-9": "neutral"},
    verdict="answered",
    confidence=0.8,
    stance_on="yes",
)
UNSURE = replace(WRITTEN, verdict="not_enough_evidence", confidence=0.2)


def test_question_of_unknown_type_uses_the_guessed_type() -> None:
    answerer, unknown = make_answerer(None, CORPUS), replace(QUESTION, type="unknown")
    assert reply_of(answerer.answer, unknown).question.type == "yesno"
    assert reply_of(answerer.search, unknown).question.type == "yesno"


def test_answered_question_states_the_whole_answer() -> None:
    assert stated_fields(QUESTION, WRITTEN) == {
        "verdict": "answered",
        "confidence": 0.8,
        "signals": {},
        "ideal": SAID,
        "exact": "yes",
        "origin": "extractive",
        "supported": SAID,
        "guess": None,
    }
    names = replace(WRITTEN, exact=[["a"]], guesses=[["a"], ["b"]])
    stated = stated_fields(replace(QUESTION, type="factoid", guess=True), names)
    assert (stated["verdict"], stated["exact"]) == ("answered", [["a"]])
    assert stated["guess"] == Guess(SAID, [["a"], ["b"]])


def test_not_enough_evidence_states_no_answer() -> None:
    silent = {
        "verdict": "not_enough_evidence",
        "confidence": 0.2,
        "ideal": (),
        "exact": None,
        "origin": "none",
        "guess": None,
        "signals": {},
        "closest": (),
    }
    assert stated_fields(QUESTION, UNSURE) == silent
    # The best guess is returned on request.
    guess = Guess(SAID, "yes")
    assert stated_fields(replace(QUESTION, guess=True), UNSURE) == {**silent, "guess": guess}


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (replace(WRITTEN, origin="generated"), "smol"),
        (WRITTEN, ""),
        (replace(UNSURE, origin="generated"), ""),
    ],
)
def test_model_that_wrote_the_stated_answer_is_named(
    written: WrittenAnswer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answerer = make_answerer(None, CORPUS)
    answerer.backend.facts = replace(answerer.backend.facts, language_model="smol")
    monkeypatch.setattr(answerer, "_write", AsyncMock(return_value=written))
    assert reply_of(answerer.answer, QUESTION).written_by == name


def test_unrelated_requires_a_search_of_the_whole_index(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    unrelated_to_all = replace(UNSURE, unrelated=True)
    given = replace(QUESTION, given=(evidence("It is.")[0].passage,))
    for name, question, filters, broken, unrelated in (
        ("whole index", QUESTION, NO_FILTERS, (), True),
        ("filters", QUESTION, Filters(year_from=1900), (), False),
        ("given evidence", given, NO_FILTERS, (), False),
        ("lost stage", QUESTION, NO_FILTERS, ("expand",), False),
    ):
        with subtests.test(name):
            answerer = make_answerer(None, CORPUS, broken=broken)
            monkeypatch.setattr(answerer, "_write", AsyncMock(return_value=unrelated_to_all))
            answer = reply_of(answerer.answer, question, filters=filters)
            assert (answer.unrelated, answer.degraded == ()) == (unrelated, not broken)
            assert (verdict_words(answer) == UNRELATED) is unrelated
            if answer.citations:
                assert nearest_words(answer)
                assert cited_pmids(answer)


def test_evidence_has_a_stance_only_if_an_answer_is_stated() -> None:
    items = evidence("It helped", "Cats nap.", "Dogs bark")
    found = [(item.stance, item.stance_on) for item in with_stances(items, WRITTEN)]
    assert found == [("support", "yes"), ("neutral", "yes"), ("unknown", "")]
    (item,) = with_stances(items[:1], UNSURE)
    assert (item.stance, item.stance_on) == ("unknown", "")


def test_question_without_evidence_is_not_answered() -> None:
    answer = reply_of(make_answerer(None, CORPUS).answer, replace(QUESTION, exclude=(1, 2, 3)))
    assert (answer.verdict, answer.confidence) == ("not_enough_evidence", 0.0)
    assert (answer.ideal, answer.exact, answer.guess) == ((), None, None)


def test_shown_passages_are_positions_in_the_evidence() -> None:
    items = evidence("One.", "Two.", "Three.")
    ids = [items[2].passage.id, items[0].passage.id, "9:abstract:0-4"]
    assert positions_of(ids, items) == (2, 0)
    assert positions_of(None, items) is None
