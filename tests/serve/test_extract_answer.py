from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster.records import Evidence, Question
from serve.extract_answer import extract_ideal
from tests.serve.answering import encode, evidence, passage

QUESTION = Question("q", "Does metformin lower blood glucose?", "yesno")
BEST = "Metformin does lower the blood glucose of adults."
NEXT = "The drug metformin is taken by many adults."
OTHER = "Losartan is taken for high blood pressure today."


def texts(*parts: str, **options: int) -> list[str]:
    return [s.text for s in extract_ideal(QUESTION, evidence(*parts), encode, **options)]


def test_nearest_sentence_comes_first() -> None:
    assert texts(OTHER, f"{NEXT} {BEST}")[0] == BEST


def test_sentence_cites_the_citation_it_stands_in() -> None:
    (best, *_) = extract_ideal(QUESTION, evidence(OTHER, BEST), encode)
    assert (best.pmids, best.support) == ((2,), 1.0)


def test_rank_breaks_the_tie_of_equal_sentences() -> None:
    (first, *_) = extract_ideal(QUESTION, evidence(BEST, BEST), encode)
    assert first.pmids == (1, 2)


def test_sentence_said_by_many_is_said_once_and_cites_three() -> None:
    found = extract_ideal(QUESTION, evidence(*[BEST] * 5), encode)
    assert [s.pmids for s in found] == [(1, 2, 3)]


def test_near_equal_sentences_with_other_numbers_both_stay() -> None:
    one = "Metformin lowers blood glucose by 30% in most treated adults."
    two = "Metformin lowers blood glucose by 40% in most treated adults."
    assert sorted(texts(one, two)) == [one, two]


def test_fragments_are_left_out_where_whole_sentences_are() -> None:
    fragment = "lower blood glucose by metformin in"
    assert texts(fragment, BEST) == [BEST]


def test_fragment_is_better_than_nothing() -> None:
    fragment = "lower blood glucose by metformin in"
    assert texts(fragment) == [fragment]


def test_title_needs_no_full_stop() -> None:
    title = "Metformin and blood glucose in adults"
    found = extract_ideal(QUESTION, [Evidence(passage(title, title=True))], encode)
    assert [s.text for s in found] == [title]


def test_section_label_is_not_part_of_the_answer() -> None:
    assert texts(f"CONCLUSIONS: {BEST}") == [BEST]


def test_question_in_a_title_is_no_answer() -> None:
    assert texts("Does metformin lower blood glucose in adults?") == []


def test_missing_title_is_no_answer() -> None:
    assert texts("[Not Available].") == []


def test_number_of_sentences_is_bounded() -> None:
    assert len(texts(BEST, NEXT, OTHER, max_sentences=2)) == 2


def test_a_sentence_that_would_pass_the_word_limit_is_skipped() -> None:
    # BEST has 8 words, OTHER 8.
    assert texts(BEST, OTHER, max_words=15) == [BEST]


def test_overlong_sentence_yields_to_a_whole_one() -> None:
    overlong = "Does metformin lower blood glucose " + "and more " * 50 + "."
    assert texts(overlong, NEXT) == [NEXT]


def test_no_evidence_gives_no_answer() -> None:
    assert texts() == []


def test_of_two_like_sentences_the_one_with_the_questions_rare_word_comes_first() -> None:
    body = "Is casimersen effective in muscular dystrophy?"
    other = "Viltolarsen is effective in muscular dystrophy of boys."
    meant = "Casimersen is effective in muscular dystrophy of boys."
    filler = "Muscular dystrophy is effective to study in boys today."

    def blind(found: Sequence[str]) -> np.ndarray:
        return np.ones((len(found), 2), np.float32) / np.float32(np.sqrt(2))

    question = Question("q", body, "yesno")
    [first, *_] = extract_ideal(question, evidence(f"{other} {meant} {filler}"), blind)
    assert first.text == meant
