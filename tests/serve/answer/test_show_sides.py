from __future__ import annotations

from cluster.answers import Question, QuestionType, Sentence
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.ask_model import Briefing, WriterLimits
from serve.answer.extract_answer import IN_CONTRAST
from serve.answer.read_evidence import read_evidence
from serve.answer.show_sides import note_sides, quote_opposition
from serve.support.attribute_sentences import ReaderSupport, SimilaritySupport
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


def test_yesno_stances_are_those_of_the_reader() -> None:
    briefing = brief(YES, NO, "Cats sleep for most of the day.")
    ideal, stances = note_sides(briefing, IDEAL, SimilaritySupport(None), "yes")
    assert list(stances.values()) == ["support", "contradict", "neutral"]
    assert ideal[0].contradicted == (2,)
    _, against = note_sides(briefing, IDEAL, SimilaritySupport(None), "no")
    assert list(against.values()) == ["contradict", "support", "neutral"]


def test_other_stances_refer_to_the_sentences() -> None:
    scorer = ReaderSupport(SimilaritySupport(None), WordReader().read)
    ideal, stances = note_sides(brief(YES, NO, kind="summary"), IDEAL, scorer, None)
    assert list(stances.values()) == ["support", "contradict"]
    assert ideal[0].contradicted == (2,)


def test_opposition_is_quoted_if_sources_disagree() -> None:
    divided = brief(YES, NO)
    for exact, text, pmid in [("yes", NO, 2), ("no", YES, 1)]:
        *said, against = quote_opposition(divided, IDEAL, exact)
        assert (tuple(said), against.text, against.pmids) == (IDEAL, IN_CONTRAST + text, (pmid,))
    for briefing, answer in [(divided, None), (divided, [["x"]]), (brief(YES, YES), "yes")]:
        assert quote_opposition(briefing, IDEAL, answer) == IDEAL


def test_quoted_opposition_counts_towards_the_word_limit() -> None:
    against = Sentence(IN_CONTRAST + NO, (2,), 1.0)
    both = (*IDEAL, Sentence("Adults took it daily.", (3,), 1.0))
    # YES has 8 words, the sentence against it 11, the last sentence 4. A quotation alone is not
    # an answer.
    for words, kept in [(23, [*both, against]), (22, [*IDEAL, against]), (18, [*both])]:
        assert list(quote_opposition(brief(YES, NO, max_words=words), both, "yes")) == kept, words
