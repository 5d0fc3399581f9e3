"""Questions, answers, documents and snippets of BioASQ and Synergy runs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from evaluation.find_citations import CitationLookup
from evaluation.lint.check_bioasq import check_bioasq
from evaluation.lint.note_problems import Asked, Checked, read_pmid
from tests.evaluation.lint.lint_runs import ABSTRACT, URL, messages, question, snippet

NAMES = [[str(n)] for n in range(101)]


def exact(kind: str, value: Any) -> tuple[Any, Checked]:
    checked = check_bioasq([question(type=kind, exact_answer=value)])
    return checked.rows[0].get("exact_answer"), checked


def ideal(value: Any) -> tuple[Any, Checked]:
    checked = check_bioasq([question(ideal_answer=value)])
    return checked.rows[0]["ideal_answer"], checked


def test_yesno_answer_is_normalised() -> None:
    for written in (" Yes", "YES\n"):
        value, checked = exact("yesno", written)
        assert value == "yes"
        assert [p.mend for p in checked.problems] == ["writes yes"]
    for other in ("maybe", "Yes, it does", ["yes"], 1):
        found, checked = exact("yesno", other)
        assert found == other
        assert len(messages(checked, mendable=False)) == 1


def test_list_answers_are_repaired(subtests: pytest.Subtests) -> None:
    nested = "must be a list of lists"
    synonyms = "2 synonyms, of which only the first counts"
    for kind, written, wanted, problems in [
        ("factoid", "a", [["a"]], [nested]),
        ("factoid", [["JC virus", "JCV"], ["", "HIV"]], [["JC virus"], ["HIV"]], [synonyms] * 2),
        (
            "list",
            [["Iron"], [" "], ["iron"], []],
            [["Iron"]],
            ["is empty", "is empty", "'iron' occurs twice"],
        ),
        ("list", [["a" * 101], ["b" * 100]], [["b" * 100]], ["101 characters, at most 100"]),
        ("factoid", [["a" * 101]], [["a" * 101]], []),
        ("factoid", NAMES[:6], NAMES[:5], ["6 items, at most 5"]),
        ("list", NAMES, NAMES[:100], ["101 items, at most 100"]),
    ]:
        with subtests.test(kind=kind, written=written):
            value, checked = exact(kind, written)
            assert (value, messages(checked)) == (wanted, problems)
    for odd in (5, {"a": 1}, [[5]], [["a"], None]):
        with subtests.test(odd=odd):
            found, checked = exact("list", odd)
            assert found == odd
            assert "must be a list of lists of strings" in messages(checked, mendable=False)[0]


def test_exact_answer_of_summary_question_is_removed() -> None:
    value, checked = exact("summary", "yes")
    assert value is None
    assert [p.mend for p in checked.problems] == ["removes it"]


def test_ideal_answer_is_cut_after_the_last_sentence_within_200_words() -> None:
    sentence = "Word " * 49 + "word."
    value, checked = ideal(" ".join([sentence] * 5))
    assert value == " ".join([sentence] * 4)
    assert messages(checked, mendable=True) == ["250 words, at most 200"]
    # A first sentence over the limit is kept.
    text = "Word " * 200 + "word."
    value, checked = ideal(text)
    assert value == text
    assert messages(checked, mendable=False) == ["201 words, at most 200"]


def test_citation_marks_are_removed_from_texts(subtests: pytest.Subtests) -> None:
    for text, wanted in [
        ("Iron [12345678]. Zinc (PMID 123; 456).", "Iron. Zinc."),
        ("Iron [12345678, 23456789].", "Iron."),
        ("Iron [PMID: 1, PMID: 2] binds [3].", "Iron binds."),
        ("[12345678] Iron.", "Iron."),
        # Removing the inner citation mark leaves another one.
        ("Iron [1(PMID 2)3].", "Iron."),
        # These texts only look like citations.
        *((t, t) for t in ("[18F]FDG in [1989]", "95% CI [12, 45]", "benzo[3]annulene")),
        ("[2+2] (n = 12345)", "[2+2] (n = 12345)"),
    ]:
        with subtests.test(text=text, wanted=wanted):
            value, checked = ideal(text)
            assert value == wanted
            assert len(messages(checked, mendable=True)) == (text != wanted)


def test_missing_answer_is_reported_if_others_have_one(subtests: pytest.Subtests) -> None:
    for nothing in [None, "", " ", [], [""], [[]], [[""]]]:
        with subtests.test(nothing=nothing):
            full = question(id="a", type="yesno", exact_answer="no", ideal_answer="No.")
            empty = question(id="b", type="yesno", exact_answer=nothing, ideal_answer=nothing)
            checked = check_bioasq([full, empty])
            assert [p.place for p in checked.problems] == [
                "question 1 (id b), exact_answer",
                "question 1 (id b), ideal_answer",
            ]
            assert not any(p.mendable for p in checked.problems)
            assert check_bioasq([empty]).problems == ()
    # A summary question needs no exact answer.
    checked = check_bioasq([full, question(id="b")])
    assert [p.place for p in checked.problems] == ["question 1 (id b), ideal_answer"]


def test_ids_are_checked_against_the_questions_file() -> None:
    asked = {str(n): Asked("summary") for n in range(8)}
    rows = [question(id="0"), question(id="0"), question(id="x")]
    checked = check_bioasq(rows, asked)
    assert [(p.place, p.message) for p in checked.problems] == [
        ("id 0", "has 2 answers; keep one"),
        ("id x", "is not in the questions file"),
        ("run", "7 of 8 questions have no answer: 1, 2, 3, 4, 5, ..."),
    ]


def test_invalid_structure_is_reported_and_kept(subtests: pytest.Subtests) -> None:
    for row, message in [
        (5, "must be an object, not 5"),
        ({"type": "list"}, "id must be a string that is not empty, not None"),
        ({"id": "q"}, "is missing; name a file of questions with --questions"),
        (
            question(type="essay", exact_answer=[5]),
            "'essay' is not one of yesno, factoid, list, summary",
        ),
        (question(documents="d"), "must be a list, not 'd'"),
        (question(snippets=[5]), "must be an object, not 5"),
    ]:
        with subtests.test(row=row, message=message):
            checked = check_bioasq([row])
            assert messages(checked) == [message]
            assert not checked.problems[0].mendable
            assert checked.rows == [row]


def test_synergy_requires_answers_only_for_ready_questions() -> None:
    answers = {"exact_answer": "yes", "ideal_answer": "Yes."}
    rows = [
        question(id="ready", type="yesno"),
        question(id="early", type="yesno", **answers),
        question(id="unsaid", type="yesno", **answers),
    ]
    asked = {
        "ready": Asked("yesno", answer_ready=True),
        "early": Asked("yesno", answer_ready=False),
        "unsaid": Asked("yesno"),
    }
    checked = check_bioasq(rows, asked, synergy=True)
    assert [(p.place, p.mendable) for p in checked.problems] == [
        ("question 0 (id ready), exact_answer", False),
        ("question 0 (id ready), ideal_answer", False),
        ("question 1 (id early), exact_answer", True),
        ("question 1 (id early), ideal_answer", True),
    ]
    assert checked.rows[1:] == [question(id="early", type="yesno"), rows[2]]


def test_answer_ready_flag_of_the_run_is_the_fallback() -> None:
    row = question(answer_ready=False, ideal_answer="Early.")
    assert check_bioasq([row], synergy=True).rows == [question(answer_ready=False)]
    assert check_bioasq([row]).problems == ()


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


def test_document_addresses_are_normalised(subtests: pytest.Subtests) -> None:
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
    dropped = check_bioasq([row], lookup=lookup, drop_unknown=True)
    assert dropped.rows == [question(documents=[f"{URL}7"], snippets=[])]
    assert messages(dropped, mendable=False) == []


def test_snippet_section_is_renamed() -> None:
    old = snippet(beginSection="sections.0", endSection="Abstract")
    checked = check_bioasq([question(snippets=[old])])
    assert checked.rows[0]["snippets"] == [snippet()]
    assert messages(checked, mendable=True) == ["sections 'sections.0' and 'Abstract'"]
    for begin, end in [("title", "abstract"), ("body", "body"), (None, 3)]:
        checked = check_bioasq([question(snippets=[snippet(beginSection=begin, endSection=end)])])
        assert "both title or both abstract" in messages(checked, mendable=False)[0]
