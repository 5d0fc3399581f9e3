"""Runs of TREC BioGen, tasks A and B."""

from __future__ import annotations

import pytest

from evaluation.find_citations import CitationLookup
from evaluation.lint.note_problems import Asked
from tests.evaluation.lint.lint_runs import (
    METADATA,
    URL,
    cited,
    grounded,
    messages,
    sentence,
    task_a,
    task_b,
)


def test_biogen_run_at_its_limits_has_no_problem() -> None:
    words = "Word " * 124 + "word."
    assert task_a([grounded()], {"116": Asked()}).problems == ()
    assert task_a([grounded(existing_supported_citations=None)]).problems == ()
    # The sentences of task A are given, so their texts are not checked.
    assert task_a([grounded(text="Iron [1]. Zinc [12345].")]).problems == ()
    full = cited(sentence(words, 1, 2, 3), sentence(words))
    assert task_b([full], {"181": Asked()}).problems == ()


def test_task_a_keeps_three_new_pmids_per_kind() -> None:
    row = grounded(supported_citations=[1, "2", 2, 3, 4, 5], contradicted_citations=[9, 6, 7, 8])
    checked = task_a([row])
    new = checked.rows[0]["answer"][0]
    assert (new["supported_citations"], new["contradicted_citations"]) == (["2", 3, 4], [9, 6, 7])
    assert messages(checked) == [
        "2 occurs twice",
        "1 of them in existing_supported_citations",
        "4 items, at most 3",
        "4 items, at most 3",
    ]
    assert messages(checked, mendable=False) == []


def test_task_a_reports_pmid_that_supports_and_contradicts() -> None:
    checked = task_a([grounded(contradicted_citations=[1, 2])])
    assert messages(checked, mendable=False) == [
        "PMID 1 supports the sentence as well",
        "PMID 2 supports the sentence as well",
    ]


def test_task_a_repairs_missing_and_misnamed_lists() -> None:
    item = grounded()["answer"][0]
    del item["supported_citations"]
    item["contradicting_citations"] = item.pop("contradicted_citations")
    checked = task_a([{"metadata": METADATA, "answer": [item]}])
    new = checked.rows[0]["answer"][0]
    assert (new["supported_citations"], new["contradicted_citations"]) == ([], [5, 6, 8])
    assert "contradicting_citations" not in new
    assert messages(checked, mendable=False) == []


def test_task_b_requires_one_to_three_bare_pmids(subtests: pytest.Subtests) -> None:
    for given, wanted, problems in [
        (
            ["PMID: 7", f"{URL}8", "x"],
            ["7", "8", "x"],
            ["'PMID: 7' is not the bare PMID", f"'{URL}8' is not the ba", "'x' is not a PMID"],
        ),
        ({"7": "why", "8": "how"}, ["7", "8"], ["is an object"]),
        ([1, 2, 3, 4], [1, 2, 3], ["4 items, at most 3"]),
        ([], [], ["no citation; 1 to 3 are required"]),
    ]:
        with subtests.test(given=given):
            checked = task_b([cited({"text": "Iron.", "citations": given})])
            assert checked.rows[0]["responses"][0]["citations"] == wanted
            found = messages(checked)
            assert all(map(str.startswith, found, problems)), found
            assert len(found) == len(problems)
            fixed = all(p.mendable for p in checked.problems)
            assert fixed == (
                problems[-1] not in ("'x' is not a PMID", "no citation; 1 to 3 are required")
            )


def test_task_b_requires_one_sentence_without_citation_marks() -> None:
    checked = task_b([cited(sentence("Iron is stored. Zinc is not."))])
    assert messages(checked, mendable=False) == ["2 sentences; each item must have one"]
    checked = task_b([cited(sentence("Iron is stored [12345678]."))])
    assert checked.rows[0]["responses"] == [sentence("Iron is stored.")]


def test_task_b_drops_sentences_beyond_250_words() -> None:
    words = "Word " * 124 + "word."
    checked = task_b([cited(sentence(words), sentence(words), sentence(words))])
    assert len(checked.rows[0]["responses"]) == 2
    assert messages(checked, mendable=True) == ["375 words, at most 250"]
    one = task_b([cited(sentence("Word " * 250 + "word."))])
    assert messages(one, mendable=False) == ["251 words, at most 250"]


def test_biogen_pmids_are_checked_against_the_index(lookup: CitationLookup) -> None:
    row = cited(sentence("Iron.", 7, 8, 9))
    assert len(messages(task_b([row], lookup=lookup), mendable=False)) == 2
    dropped = task_b([row], lookup=lookup, drop_unknown=True)
    assert dropped.rows[0]["responses"][0]["citations"] == [7]


def test_invalid_biogen_structure_is_reported_and_kept(subtests: pytest.Subtests) -> None:
    for row, places in [
        (5, ["record 1"]),
        ({"responses": [sentence()]}, ["record 1, metadata"]),
        ({"metadata": {}, "responses": [sentence()]}, ["record 1, metadata"] * 3),
        ({"metadata": METADATA}, ["record 1 (topic_id 181), responses"]),
        (cited(), ["record 1 (topic_id 181), responses"]),
        ({"metadata": METADATA, "responses": "x"}, ["record 1 (topic_id 181), responses"]),
        (cited(5), ["record 1 (topic_id 181), responses 1"]),  # type: ignore[arg-type]
        (cited(sentence(" ")), ["record 1 (topic_id 181), responses 1, text"]),
        (
            cited({"text": "Iron.", "citations": "7"}),
            ["record 1 (topic_id 181), responses 1, citations"] * 2,
        ),
    ]:
        with subtests.test(row=row, places=places):
            checked = task_b([row])
            assert [p.place for p in checked.problems] == places
            assert not any(p.mendable for p in checked.problems)
            assert checked.rows == [row]
