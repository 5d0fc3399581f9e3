"""Exact and ideal answers of BioASQ and Synergy runs, and their questions."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.lint.check_bioasq import check_bioasq
from evaluation.lint.note_problems import Asked, Checked
from tests.evaluation.lint.lint_runs import messages, question


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


def test_entities_beyond_the_limit_are_dropped() -> None:
    for kind, limit in (("factoid", 5), ("list", 100)):
        value, checked = exact(kind, [[str(n)] for n in range(limit + 1)])
        assert value == [[str(n)] for n in range(limit)]
        assert messages(checked) == [f"{limit + 1} items, at most {limit}"]


def test_list_answers_are_repaired(subtests: pytest.Subtests) -> None:
    nested = "must be a list of lists"
    synonyms = "2 synonyms, of which only the first counts"
    for kind, written, wanted, told in [
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
    ]:
        with subtests.test(kind=kind, written=written):
            value, checked = exact(kind, written)
            assert (value, messages(checked)) == (wanted, told)
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
            "'essay' is none of yesno, factoid, list, summary",
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
