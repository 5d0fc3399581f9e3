from __future__ import annotations

import pytest

from serve.answer.cite_marks import clean_cited, read_cited

KNOWN = {1: 101, 2: 102, 3: 103}


def test_marks_of_every_kind_become_pmids(subtests: pytest.Subtests) -> None:
    for text in [
        "Metformin lowers glucose [1, 3].",
        "Metformin lowers glucose [1][3].",
        "Metformin lowers glucose. [1, 3]",
        "Metformin lowers glucose [Snippet 1; Snippet 3].",
        "Metformin lowers glucose (snippets 1 and 3).",
        "Metformin lowers glucose [1 and 3], [1].",
    ]:
        with subtests.test(text=text):
            assert read_cited(text, KNOWN) == [("Metformin lowers glucose.", (101, 103))]


def test_a_range_is_all_of_its_numbers() -> None:
    assert read_cited("It helps [1-3].", KNOWN) == [("It helps.", (101, 102, 103))]


def test_a_mark_after_the_stop_belongs_to_the_sentence_before() -> None:
    found = read_cited("It helps. [2] It is safe. [3]", KNOWN)
    assert found == [("It helps.", (102,)), ("It is safe.", (103,))]


def test_a_mark_after_a_percentage_belongs_to_it_too() -> None:
    (first, _) = read_cited("It fell by 30%. [2] It is safe.", KNOWN)
    assert first == ("It fell by 30%.", (102,))


def test_pmids_are_read_as_they_are() -> None:
    known = {30311221: 30311221, 21306691: 21306691}
    found = read_cited("It helps [30311221, PMID: 21306691].", known)
    assert found == [("It helps.", (30311221, 21306691))]


def test_numbers_without_a_passage_are_not_cited() -> None:
    assert read_cited("It helps [0, 2, 9].", KNOWN) == [("It helps.", (102,))]


def test_a_very_long_range_counts_only_its_ends() -> None:
    assert read_cited("It helps [1-99999999].", KNOWN) == [("It helps.", (101,))]


@pytest.mark.parametrize(
    "text", ["The dose was 5 (n = 3).", "CI [0.1, 0.5] was wide.", "It rose (2 to 3)."]
)
def test_numbers_that_cite_nothing_stay(text: str) -> None:
    assert read_cited(text, KNOWN) == [(text, ())]


def test_the_papers_own_form_is_read_as_what_the_snippet_states() -> None:
    said = "This conclusion is supported by [Snippet 2], which states that 'drug X lowers LDL'."
    assert read_cited(said, KNOWN) == [("Drug X lowers LDL.", (102,))]


def test_sentences_that_say_nothing_are_left_out_with_their_marks() -> None:
    said = "I cannot answer that [1]. Metformin lowers blood glucose [2]."
    assert clean_cited(said, KNOWN) == {"Metformin lowers blood glucose.": (102,)}
