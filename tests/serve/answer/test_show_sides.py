"""Stances of passages towards an answer, and the other side quoted."""

from __future__ import annotations

from cluster.answers import Question, QuestionType, Sentence
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.ask_model import Briefing, WriterLimits
from serve.answer.extract_answer import IN_CONTRAST
from serve.answer.read_evidence import read_evidence
from serve.answer.show_sides import against_model, note_sides, side_of, with_room
from serve.support.attribute_sentences import SimilaritySupport
from tests.serve.answering import WordReader, evidence

BODY = "Does metformin lower blood glucose?"
YES = "Metformin does lower the blood glucose of adults."
NO = "Metformin does not lower the blood glucose of adults."
IDEAL = (Sentence(YES, (1,), 0.9),)


def brief(*texts: str, kind: QuestionType = "yesno", **style: int) -> Briefing:
    items = evidence(*texts)
    return Briefing(
        None,
        WriterLimits(),
        AnswerSettings(**style),  # type: ignore[arg-type]
        Question("q", BODY, kind),
        items,
        read_evidence(BODY, items, WordReader()),
    )


def test_stances_on_a_yes_or_no_are_the_readers() -> None:
    briefing = brief(YES, NO, "Cats sleep for most of the day.")
    ideal, stances = note_sides(briefing, IDEAL, SimilaritySupport(None), "yes")
    assert list(stances.values()) == ["support", "contradict", "neutral"]
    assert ideal[0].contradicted == (2,)
    _, against = note_sides(briefing, IDEAL, SimilaritySupport(None), "no")
    assert list(against.values()) == ["contradict", "support", "neutral"]


def test_stances_on_another_answer_are_towards_its_sentences() -> None:
    ideal, stances = note_sides(
        brief(YES, NO, kind="summary"), IDEAL, SimilaritySupport(None), None
    )
    assert list(stances.values()) == ["support", "contradict"]
    assert ideal[0].contradicted == (2,)


def test_a_preset_that_weighs_both_sides_quotes_the_other_one() -> None:
    ideal, _ = note_sides(brief(YES, NO, weigh=2), IDEAL, SimilaritySupport(None), "yes")
    assert len(ideal) == 2
    assert ideal[1].text.endswith(NO)
    assert ideal[1].pmids == (2,)


def test_a_models_yes_or_no_gets_a_sentence_against_it_where_sources_disagree() -> None:
    divided = brief(YES, NO)
    for exact, text, pmid in [("yes", NO, 2), ("no", YES, 1)]:
        found = against_model(divided, exact)
        assert found is not None
        assert (found.text, found.pmids) == (IN_CONTRAST + text, (pmid,))
    assert against_model(divided, None) is None
    assert against_model(divided, [["metformin"]]) is None
    assert against_model(brief(YES, YES), "yes") is None


def test_only_yes_and_no_are_sides() -> None:
    answers = ["yes", "no", "", None, [["yes"]]]
    assert [side_of(exact) for exact in answers] == ["yes", "no", None, None, None]  # type: ignore[arg-type]


def test_the_sentence_against_the_answer_takes_its_words_from_the_limit() -> None:
    against = Sentence(NO, (2,), 1.0)
    both = (*IDEAL, Sentence("Adults took it daily.", (3,), 1.0))
    # YES has 8 words, NO has 9, the last sentence 4.
    for words, kept in [(21, [*both, against]), (20, [*IDEAL, against]), (16, [against])]:
        assert list(with_room(brief(YES, max_words=words), both, against)) == kept, words
