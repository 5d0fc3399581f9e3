from __future__ import annotations

import pytest

from serve.answer.clean_answer import clean_answer

GOOD = "Metformin lowers blood glucose by 30% in adults."


def test_good_answer_stays_as_it_is() -> None:
    text = "Metformin lowers glucose by 1.5 mmol/l (p < 0.05). It does not cause weight gain."
    assert " ".join(clean_answer(text)) == text


def test_citations_and_wrapping_are_stripped(subtests: pytest.Subtests) -> None:
    for cited in [
        "Metformin lowers blood glucose by 30% in adults [1].",
        "Metformin lowers blood glucose by 30% in adults [1, 2].",
        "Metformin lowers blood glucose by 30% in adults [1-3].",
        "Metformin lowers blood glucose by 30% in adults (PMID: 12345678).",
        "Metformin lowers blood glucose [PMID 123] by 30% in adults.",
        "Metformin lowers blood glucose by 30% in adults (passage 1).",
        "Metformin lowers blood glucose by 30% in adults (passages 1 and 2).",
        "Answer: Metformin lowers blood glucose by 30% in adults.",
        "Based on the passages, Metformin lowers blood glucose by 30% in adults.",
        "- Metformin lowers blood glucose by 30% in adults.",
        "1. Metformin lowers blood glucose by 30% in adults.",
        "<evidence>Metformin lowers blood glucose by 30% in adults.</evidence>",
        "Metformin lowers blood glucose by 30% in adults.<|im_end|>",
    ]:
        with subtests.test(cited=cited):
            assert [*clean_answer(cited)] == [GOOD]


def test_brackets_that_cite_nothing_stay(subtests: pytest.Subtests) -> None:
    for kept in [
        "The interleukin (IL-6) rises in 3 patients.",
        "The dose was 5 (range 3-8) mg in adults.",
        "Complex [Fe(CN)6] binds to the protein.",
        "Risk rose by 10-12% (95% CI 8-14) in adults.",
    ]:
        with subtests.test(kept=kept):
            assert [*clean_answer(kept)] == [kept]


def test_what_answers_nothing_is_dropped(subtests: pytest.Subtests) -> None:
    for said in [
        "1, 2, 3, 4, 5, 6, 7.",
        "12 34 56 and 78 of 90 and 12 34 56 78.",
        "Yes.",
        "What are the causes of it all?",
        "",
        "the gene the gene the gene the gene the gene the gene.",
        "BRCA1 and BRCA2 and BRCA1 and BRCA2 and BRCA1 and BRCA2 genes and and and.",
    ]:
        with subtests.test(said=said):
            assert [*clean_answer(said)] == []


def test_cut_off_last_sentence_is_dropped() -> None:
    assert [*clean_answer(f"{GOOD} It is also known that")] == [GOOD]


def test_repeated_sentence_is_said_once() -> None:
    assert [*clean_answer(f"{GOOD} {GOOD}")] == [GOOD]


def test_sentence_with_another_number_is_no_repetition() -> None:
    other = GOOD.replace("30", "40")
    assert [*clean_answer(f"{GOOD} {other}")] == [GOOD, other]


def test_recited_evidence_is_no_answer() -> None:
    assert [*clean_answer(f"<evidence>\n[1] {GOOD}\n[2] {GOOD}\n</evidence>")] == []


def test_a_label_goes_and_its_sentence_stays() -> None:
    assert [*clean_answer(f"Conclusions: {GOOD}")] == [GOOD]


KNOWN = {1: 101, 2: 102, 3: 103}


def cited(text: str, known: dict[int, int] = KNOWN) -> list[tuple[str, tuple[int, ...]]]:
    return [*clean_answer(text, known).items()]


def test_marks_of_every_kind_become_pmids(subtests: pytest.Subtests) -> None:
    for text in [
        "Metformin lowers blood glucose [1, 3].",
        "Metformin lowers blood glucose [1][3].",
        "Metformin lowers blood glucose. [1, 3]",
        "Metformin lowers blood glucose [Snippet 1; Snippet 3].",
        "Metformin lowers blood glucose (snippets 1 and 3).",
        "Metformin lowers blood glucose [1 and 3], [1].",
    ]:
        with subtests.test(text=text):
            assert cited(text) == [("Metformin lowers blood glucose.", (101, 103))]


def test_a_range_is_all_of_its_numbers() -> None:
    assert cited("It helps most of them [1-3].") == [("It helps most of them.", (101, 102, 103))]


def test_a_mark_after_the_stop_belongs_to_the_sentence_before() -> None:
    found = cited("It helps most of them. [2] It is safe for them. [3]")
    assert found == [("It helps most of them.", (102,)), ("It is safe for them.", (103,))]


def test_a_mark_after_a_percentage_belongs_to_it_too() -> None:
    (first, _) = cited("It fell there again by 30%. [2] It is safe for them.")
    assert first == ("It fell there again by 30%.", (102,))


def test_pmids_are_read_as_they_are() -> None:
    known = {30311221: 30311221, 21306691: 21306691}
    found = cited("It helps most of them [30311221, PMID: 21306691].", known)
    assert found == [("It helps most of them.", (30311221, 21306691))]


def test_numbers_without_a_passage_are_not_cited() -> None:
    assert cited("It helps most of them [0, 2, 9].") == [("It helps most of them.", (102,))]


def test_a_very_long_range_counts_only_its_ends() -> None:
    assert cited("It helps most of them [1-99999999].") == [("It helps most of them.", (101,))]


@pytest.mark.parametrize(
    "text",
    ["The mean dose was 5 (n = 3).", "The CI [0.1, 0.5] was wide.", "It rose in them (2 to 3)."],
)
def test_numbers_that_cite_nothing_stay(text: str) -> None:
    assert cited(text) == [(text, ())]
