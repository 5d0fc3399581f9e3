"""Documents and snippets of BioASQ runs, without an index and against one."""

from __future__ import annotations

import copy

import pytest

from evaluation.find_citations import CitationLookup
from evaluation.lint.check_bioasq import check_bioasq
from evaluation.lint.note_problems import Asked, read_pmid
from tests.evaluation.lint.lint_runs import ABSTRACT, URL, messages, question, snippet


def test_bioasq_run_at_its_limits_has_no_problem() -> None:
    rows = [
        question(
            type="list",
            documents=[f"{URL}{n}" for n in range(1, 11)],
            snippets=[snippet(begin=n, end=n + 14) for n in range(10)],
            exact_answer=[[f"{n:0100d}"] for n in range(100)],
            ideal_answer=" ".join(["word"] * 200),
        )
    ]
    before = copy.deepcopy(rows)
    checked = check_bioasq(rows, {"q": Asked("list")})
    assert checked.problems == ()
    assert checked.rows == rows == before


def test_documents_and_snippets_beyond_ten_are_dropped() -> None:
    documents = [f"{URL}{n}" for n in range(7, 18)]
    snippets = [snippet(begin=n, end=n + 14) for n in range(11)]
    checked = check_bioasq([question(documents=documents, snippets=snippets)])
    assert messages(checked) == ["11 items, at most 10"] * 2
    assert checked.rows[0]["documents"] == documents[:10]
    assert checked.rows[0]["snippets"] == snippets[:10]
    assert checked.done[0] == (
        "question 0 (id q), documents: 11 items, at most 10: keeps the first 10"
    )
    # Duplicates are removed before the list is cut.
    documents = [f"{URL}1", f"{URL}1", *(f"{URL}{n}" for n in range(2, 11))]
    checked = check_bioasq([question(documents=documents)])
    assert messages(checked) == ["occurs twice"]
    assert len(checked.rows[0]["documents"]) == 10


def test_document_addresses_are_normalised(
    subtests: pytest.Subtests,
) -> None:
    for written in [
        "https://pubmed.ncbi.nlm.nih.gov/7/",
        "https://www.ncbi.nlm.nih.gov/pubmed/7",
        "ncbi.nlm.nih.gov/pubmed/7",
        "PMID: 7",
        " 7 ",
        7,
    ]:
        with subtests.test(written=written):
            checked = check_bioasq([question(documents=[written])])
            assert checked.rows[0]["documents"] == [f"{URL}7"]
            assert [p.mend for p in checked.problems] == [f"writes {URL}7"]


def test_document_outside_pubmed_is_reported_and_kept(subtests: pytest.Subtests) -> None:
    pmc = "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC7/"
    for other in (pmc, "x", None, True, "0", "123456789"):
        with subtests.test(other=other):
            checked = check_bioasq([question(documents=[other])])
            assert "is not a PubMed article" in messages(checked, mendable=False)[0]
            assert checked.rows[0]["documents"] == [other]
            assert read_pmid(other) is None


def test_snippet_of_other_document_is_reported() -> None:
    checked = check_bioasq([question(documents=[f"{URL}8"], snippets=[snippet()])])
    assert messages(checked, mendable=False) == [f"'{URL}7' is not among the question's documents"]
    assert check_bioasq([question(snippets=[snippet()])]).problems == ()


def test_offsets_must_match_text_length_without_an_index(subtests: pytest.Subtests) -> None:
    for odd, message in [
        (snippet(begin=14, end=14), "offsets 14 to 14: 0 or more, end after begin"),
        (snippet(begin=-1), "offsets -1 to 14: 0 or more, end after begin"),
        (snippet(begin="0"), "offsets '0' to 14: 0 or more, end after begin"),
        (snippet(end=True), "offsets 0 to True: 0 or more, end after begin"),
        # In old files the end is inclusive, so 13 stands for 14 characters from 0.
        (snippet(end=13), "offsets 0 to 13 hold 13 characters, text 14"),
        (snippet(text=""), "text must be a string that is not empty, not ''"),
    ]:
        with subtests.test(odd=odd, message=message):
            assert messages(check_bioasq([question(snippets=[odd])]), mendable=False) == [message]


def test_unique_snippet_text_gets_its_offsets(
    lookup: CitationLookup, subtests: pytest.Subtests
) -> None:
    for begin, end in [(0, 6), (24, 49), ("24", "50"), (None, None), (24, 5000), (-43, 50)]:
        with subtests.test(begin=begin, end=end):
            text = "Iron is stored in ferritin"
            assert ABSTRACT[24:50] == text
            checked = check_bioasq([question(snippets=[snippet(text, begin, end)])], lookup=lookup)
            assert checked.rows[0]["snippets"] == [snippet(text, 24, 50)]
            assert [p.mend for p in checked.problems] == ["moves the offsets to 24 and 50"]


def test_snippet_at_its_offsets_has_no_problem(lookup: CitationLookup) -> None:
    in_title = snippet("Of iron", 0, 7, beginSection="title", endSection="title")
    # In ATATAT, ATAT occurs at 0 and at 2.
    overlapping = snippet("ATAT", 2, 6, document=f"{URL}12")
    rows = [question(snippets=[snippet(), in_title, overlapping])]
    assert check_bioasq(rows, lookup=lookup).problems == ()


def test_repeated_snippet_text_keeps_its_begin(lookup: CitationLookup) -> None:
    """The text occurs at 24 and 52, so a begin of 52 is valid."""
    wrong_end = snippet("Iron is stored", 52, 65)
    checked = check_bioasq([question(snippets=[wrong_end])], lookup=lookup)
    assert checked.rows[0]["snippets"] == [snippet("Iron is stored", 52, 66)]


def test_ambiguous_snippet_text_is_kept(lookup: CitationLookup, subtests: pytest.Subtests) -> None:
    for odd, said in [
        (snippet("Iron is stored", 20, 34), "abstract; it is 2 times elsewhere"),
        (snippet("Of iron", 0, 7), "abstract; it is nowhere in it, but in the title"),
        (snippet("Zinc", 0, 4), "abstract; it is nowhere in it"),
        (snippet(text=""), "text must be a string that is not empty, not ''"),
    ]:
        with subtests.test(odd=odd):
            checked = check_bioasq([question(snippets=[odd])], lookup=lookup)
            assert messages(checked, mendable=False)[0].endswith(said)
            assert checked.rows[0]["snippets"] == [odd]


def test_deleted_pmids_are_dropped_only_on_request(lookup: CitationLookup) -> None:
    row = question(
        documents=[f"{URL}{n}" for n in (8, 7, 9)], snippets=[snippet(document=f"{URL}8")]
    )
    said = check_bioasq([row], lookup=lookup)
    assert messages(said, mendable=False) == [
        "PMID 8 is missing or deleted in index version v000001",
        "PMID 9 is retracted in index version v000001",
        "PMID 8 is missing or deleted in index version v000001",
    ]
    assert said.rows == [row]
    told = check_bioasq([row], lookup=lookup, drop_unknown=True)
    assert told.rows == [question(documents=[f"{URL}7"], snippets=[])]
    assert messages(told, mendable=False) == []


def test_snippet_section_is_renamed() -> None:
    old = snippet(beginSection="sections.0", endSection="Abstract")
    checked = check_bioasq([question(snippets=[old])])
    assert checked.rows[0]["snippets"] == [snippet()]
    assert messages(checked, mendable=True) == ["sections 'sections.0' and 'Abstract'"]
    for begin, end in [("title", "abstract"), ("body", "body"), (None, 3)]:
        checked = check_bioasq([question(snippets=[snippet(beginSection=begin, endSection=end)])])
        assert "both title or both abstract" in messages(checked, mendable=False)[0]
