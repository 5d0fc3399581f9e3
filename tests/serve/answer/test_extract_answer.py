from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cluster.answers import Evidence, Question, Sentence
from cluster.models.readings import Reading
from serve.answer.extract_answer import Extract, extract_ideal
from serve.answer.names.rank_names import RankedName
from serve.answer.read_evidence import ReadPassage, read_evidence
from serve.answer.section_labels import strip_brackets
from serve.question.asked_concepts import AskedConcepts
from tests.serve.answering import WordReader, evidence, passage

QUESTION = Question("q", "Does metformin lower blood glucose?", "yesno")
BEST = "Metformin does lower the blood glucose of adults."
NEXT = "The drug metformin is taken by many adults."
OTHER = "Losartan is taken for high blood pressure today."


def read(*parts: str) -> list[ReadPassage]:
    return read_evidence(QUESTION.body, evidence(*parts), WordReader())


def ideal(*parts: str, **options: int) -> tuple[Sentence, ...]:
    return extract_ideal(QUESTION, read(*parts), WordReader(), **options).sentences


def texts(*parts: str, **options: int) -> list[str]:
    return [s.text for s in ideal(*parts, **options)]


def test_nearest_sentence_comes_first() -> None:
    assert texts(OTHER, f"{NEXT} {BEST}")[0] == BEST


def test_sentence_cites_the_citation_it_stands_in() -> None:
    (best, *_) = ideal(OTHER, BEST)
    assert (best.pmids, best.support) == ((2,), 1.0)


def test_rank_breaks_the_tie_of_equal_sentences() -> None:
    (first, *_) = ideal(BEST, BEST)
    assert first.pmids == (1, 2)


def test_sentence_said_by_many_is_said_once_and_cites_three() -> None:
    found = ideal(*[BEST] * 5)
    assert [s.pmids for s in found] == [(1, 2, 3)]


def test_near_equal_sentences_with_other_numbers_both_stay() -> None:
    one = "Metformin lowers blood glucose by 30% in most treated adults."
    two = "Metformin lowers blood glucose by 40% in most treated adults."
    assert sorted(texts(one, two, max_sentences=2)) == [one, two]


def test_fragments_are_left_out_where_whole_sentences_are() -> None:
    fragment = "lower blood glucose by metformin in"
    assert texts(fragment, BEST) == [BEST]


def test_fragment_is_better_than_nothing() -> None:
    fragment = "lower blood glucose by metformin in"
    assert texts(fragment) == [fragment]


def test_title_needs_no_full_stop() -> None:
    title = "Metformin and blood glucose in adults"
    items = [Evidence(passage(title, title=True))]
    found = extract_ideal(QUESTION, read_evidence(QUESTION.body, items, WordReader()), WordReader())
    assert [s.text for s in found.sentences] == [title]


def test_the_brackets_of_a_translated_title_are_not_shown() -> None:
    items = [Evidence(passage("[Metformin and blood glucose in adults].", title=True))]
    found = extract_ideal(QUESTION, read_evidence(QUESTION.body, items, WordReader()), WordReader())
    assert [s.text for s in found.sentences] == ["Metformin and blood glucose in adults"]


def test_only_the_brackets_around_a_title_go(subtests: pytest.Subtests) -> None:
    for sentence, shown in [
        ("[Metformin in adults].", "Metformin in adults"),
        ("[Glucose in adults.", "Glucose in adults."),
        ("A review].", "A review"),
        ("Metformin and [18F]glucose in adults", "Metformin and [18F]glucose in adults"),
        ("[18F]glucose in adults", "[18F]glucose in adults"),
    ]:
        with subtests.test(sentence=sentence, shown=shown):
            assert strip_brackets(sentence) == shown


def test_section_label_is_not_part_of_the_answer() -> None:
    assert texts(f"CONCLUSIONS: {BEST}") == [BEST]
    assert texts(f"CONCLUSIONS {BEST}") == [BEST]


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


def test_first_sentence_takes_the_side_of_the_evidence_by_itself() -> None:
    denial = "Metformin does not lower the blood glucose of adults."
    found = extract_ideal(QUESTION, read(f"{denial} {NEXT}", denial), WordReader())
    assert found.agrees_with("no")
    assert not found.agrees_with("yes")
    assert found.sentences[0].text == denial


def test_sources_that_disagree_are_both_quoted() -> None:
    denial = "Metformin does not lower the blood glucose of adults."
    found = extract_ideal(QUESTION, read(BEST, denial), WordReader())
    assert {s.text.removeprefix("In contrast: ") for s in found.sentences} == {BEST, denial}
    assert found.sentences[1].text.startswith("In contrast: ")


def test_a_sentence_that_pairs_two_things_with_two_others_takes_no_side() -> None:
    paired = "Metformin and insulin lower the blood glucose and the weight of adults, respectively."
    assert not extract_ideal(QUESTION, read(paired), WordReader()).agrees_with("yes")
    unpaired = paired.replace(", respectively", "")
    assert extract_ideal(QUESTION, read(unpaired), WordReader()).agrees_with("yes")


def test_a_sentence_on_a_like_of_what_is_asked_about_says_no_yes() -> None:
    question = replace(QUESTION, body="Does metformin lower HbA1c and IL-6?")
    for number, agrees in (("6", True), ("8", False)):
        found = extract_ideal(
            question, read(f"Metformin lowers IL-{number} in adults."), WordReader()
        )
        assert found.agrees_with("yes") is agrees


def test_what_holds_of_some_is_no_yes_for_all() -> None:
    question = replace(QUESTION, body="Does metformin lower blood glucose in all adults?")
    for adults, agrees in (("every adult", True), ("adults", False)):
        found = extract_ideal(
            question, read(f"Metformin lowers glucose in {adults}."), WordReader()
        )
        assert found.agrees_with("yes") is agrees


def test_sentences_that_by_themselves_take_no_side_decide_nothing() -> None:
    class Silent(WordReader):
        def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
            return [Reading(0.9, 0.1, 0.0, 0.9) for _ in passages]

    found = extract_ideal(QUESTION, read(BEST), Silent())
    assert not found.agrees_with("yes")
    assert not found.agrees_with("no")


class Agreeing(WordReader):
    """Says yes to every question, the opposite one too."""

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        found = super().read(question, passages)
        return [replace(reading, yes=0.95, no=0.0, silent=0.05) for reading in found]


def test_a_yes_to_the_question_and_to_its_opposite_decides_nothing() -> None:
    opposite = "Metformin increased the blood glucose of adults."
    for sentence in (opposite, "Metformin changed the blood glucose of adults."):
        passages = read_evidence(QUESTION.body, evidence(sentence), Agreeing())
        assert not extract_ideal(QUESTION, passages, Agreeing()).agrees_with("yes")


def test_a_yes_to_both_is_believed_of_a_sentence_that_points_as_the_question_does() -> None:
    silent = "Metformin changed the blood glucose of adults."
    passages = read_evidence(QUESTION.body, evidence(silent, BEST), Agreeing())
    found = extract_ideal(QUESTION, passages, Agreeing())
    assert found.agrees_with("yes")
    assert found.sentences[0].text == BEST


class Pointing(WordReader):
    """Takes a sentence that points back for silent, unless the one before it stands beside it."""

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        found = super().read(question, passages)
        alone = Reading(0.9, 0.0, 0.0, 1.0)
        return [
            alone if text.startswith(("It ", "The drug")) or text.endswith("reader.") else reading
            for text, reading in zip(passages, found, strict=True)
        ]


def test_a_sentence_that_points_back_is_quoted_with_the_one_before() -> None:
    both = "The drug metformin was given to adults. It does lower their blood glucose."
    before = "Metformin was given to adults by the reader. It does lower their blood glucose."
    found = extract_ideal(QUESTION, read(before), Pointing())
    assert [s.text for s in found.sentences] == [before]
    assert found.agrees_with("yes")
    # Where both together say nothing either, nothing is decided.
    assert not extract_ideal(QUESTION, read(both), Pointing()).agrees_with("yes")


def test_a_sentence_quoted_with_the_one_before_is_not_said_again() -> None:
    before = "Metformin was given to adults by the reader. It does lower their blood glucose."
    found = extract_ideal(QUESTION, read(before), Pointing(), max_sentences=3)
    assert [s.text for s in found.sentences] == [before]


def test_a_sentence_with_the_best_exact_answer_goes_before_a_likelier_one() -> None:
    question = Question("q", "Which drug does lower blood glucose?", "factoid")
    likely = "Which drug does lower blood glucose was asked."
    naming = "Metformin lowers it."
    long = "Blood glucose is lower after metformin in adults."
    passages = read_evidence(question.body, evidence(likely, long, naming), WordReader())
    answers = [RankedName(("Metformin",), 0.9), RankedName(("asked",), 0.5)]
    found = extract_ideal(question, passages, WordReader(), answers)
    assert [s.text for s in found.sentences] == [long, likely]


def test_a_sentence_cut_within_a_bracket_and_an_aim_are_fragments() -> None:
    cut = "2018;38:1442-1454), which tells how metformin does lower blood glucose."
    aim = "To assess how metformin does lower the blood glucose of adults."
    assert texts(cut, aim, NEXT) == [NEXT]
    listed = "Metformin does 1) lower blood glucose and 2) spare the kidney."
    assert texts(listed) == [listed]


def test_the_first_sentence_of_a_comparison_compares() -> None:
    question = Question("q", "Is metformin better than placebo for blood glucose?", "yesno")
    alone = "Metformin is a good drug for blood glucose and is better known."
    compared = "For blood glucose metformin was better than placebo."
    passages = read_evidence(question.body, evidence(alone, compared), WordReader())
    assert extract_ideal(question, passages, WordReader()).sentences[0].text == compared


def told(body: str, *parts: str) -> Extract:
    question = Question("q", body, "summary")
    asked = AskedConcepts(concepts=((" zelania ",),))
    passages = read_evidence(body, evidence(*parts), WordReader())
    return extract_ideal(question, passages, WordReader(), asked=asked)


RESPONDS = "Most of those with zelania respond to surgery."


AIM = "To assess what curevit does in zelania, 20 adults were enrolled."


def test_a_summary_says_what_was_found_before_what_was_done() -> None:
    lowers = "It lowers glucose in zelania."
    found = told("What does curevit do in zelania?", AIM, lowers)
    assert [s.text for s in found.sentences] == [lowers, AIM]


def test_a_summary_of_how_things_are_done_may_begin_with_it() -> None:
    done = "Adults with zelania were treated with curevit."
    found = told("How is zelania treated?", "How zelania is a disorder of the gut is known.", done)
    assert found.sentences[0].text == done


def test_a_summary_begins_with_the_aspect_that_is_asked_for() -> None:
    defined = "How zelania is a disorder of the gut is known."
    found = told("How is zelania treated?", defined, RESPONDS)
    assert [s.text for s in found.sentences] == [RESPONDS, defined]
    assert found.agrees_with(None)


def test_evidence_that_never_speaks_of_the_aspect_does_not_answer() -> None:
    found = told("How is zelania treated?", "How zelania is a disorder of the gut is known.")
    assert found.sentences
    assert not found.agrees_with(None)


def test_evidence_beside_the_aspect_names_nothing_either() -> None:
    question = Question("q", "What is the cause of zelania?", "factoid")
    for text, agrees in (
        ("Gout is seen in zelania.", False),
        ("A mutation of ZEL1 causes zelania.", True),
    ):
        passages = read_evidence(question.body, evidence(text), WordReader())
        found = extract_ideal(question, passages, WordReader())
        assert found.agrees_with([["gout"]]) is agrees


def test_evidence_of_which_nothing_names_what_is_asked_does_not_answer() -> None:
    body = "What is known about zelania?"
    assert not told(body, "What is known about the gut is little.").agrees_with(None)
    assert told(body, "What is known about zelania is little.").agrees_with(None)
