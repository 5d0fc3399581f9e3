from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import RankedCitation
from cluster.errors import InputError
from cluster.records import Passage
from evaluation.audit.read_answers import StoredAnswer, read_answers
from tests.evaluation.stored_answers import evidence_of, reply, write_lines
from tests.small_index import citation

URL = "http://www.ncbi.nlm.nih.gov/pubmed/"
IRON = citation(7, "Iron is stored in ferritin.", "Iron.")


def read_one(path: Path) -> StoredAnswer:
    (answer,) = read_answers(path)
    return answer


def test_a_reply_cites_by_sentence(tmp_path: Path) -> None:
    answer = read_one(write_lines(tmp_path / "a", reply((7, 8), (8,))))
    assert answer.cited == {7: ["sentence 1"], 8: ["sentence 1", "sentence 2"]}
    assert (answer.id, answer.version) == ("q1", "v000001")


def test_evidence_that_no_sentence_cites_is_not_cited_but_quoted(tmp_path: Path) -> None:
    row = reply((8,), evidence=[evidence_of(IRON, 0, 4)])
    answer = read_one(write_lines(tmp_path / "a", row))
    assert set(answer.cited) == {8}
    assert answer.quoted == [Passage(7, "abstract", 0, 4, "Iron")]
    assert answer.described == {7: {"title": "Iron."}}


def test_an_answer_without_sentences_rests_on_its_evidence(tmp_path: Path) -> None:
    row = reply(evidence=[evidence_of(IRON, 0, 4), evidence_of(IRON, 5, 7)])
    answer = read_one(write_lines(tmp_path / "a", row))
    assert answer.cited == {7: ["evidence 1", "evidence 2"]}


def test_what_the_answer_marks_retracted_is_kept(tmp_path: Path) -> None:
    row = reply((7,), citations=[RankedCitation(7, 1.0, title="T", year=2001, retracted=True)])
    answer = read_one(write_lines(tmp_path / "a", row))
    assert (answer.retracted, answer.described) == ({7}, {7: {"title": "T", "year": 2001}})


def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a", reply((7,)), {"ideal": "none"})
    answers = read_answers(path)
    assert next(answers).id == "q1"
    with pytest.raises(InputError, match="line 2: field ideal must be a list"):
        next(answers)


def test_blank_lines_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"\ufeff\n{json.dumps(reply((7,)))}\n\n", encoding="utf-8")
    assert read_one(tmp_path / "a").place == f"{tmp_path / 'a'}: line 2"


def test_an_answer_without_an_id_goes_by_its_line(tmp_path: Path) -> None:
    assert read_one(write_lines(tmp_path / "a", {"ideal": [{"pmids": [7]}]})).id == "line 1"


def bioasq(path: Path, **fields: Any) -> Path:
    row = {"id": "q", "documents": [f"{URL}7"], **fields}
    path.write_text(json.dumps({"questions": [row]}, indent=1), encoding="utf-8")
    return path


def test_a_bioasq_run_cites_by_document_and_snippet(tmp_path: Path) -> None:
    snippet = {
        "document": f"{URL}8",
        "beginSection": "sections.0",
        "endSection": "sections.0",
        "offsetInBeginSection": 5,
        "offsetInEndSection": 7,
        "text": "is",
    }
    answer = read_one(bioasq(tmp_path / "a", snippets=[snippet]))
    assert answer.cited == {7: ["document 1"], 8: ["snippet 1"]}
    assert answer.quoted == [Passage(8, "abstract", 5, 7, "is")]
    assert answer.id == "q"


@pytest.mark.parametrize(
    "fields",
    [{"text": None}, {"endSection": "title"}, {"offsetInBeginSection": "5"}],
)
def test_a_snippet_that_cannot_be_compared_is_still_a_citation(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    snippet = {"document": f"{URL}8", "beginSection": "abstract", "endSection": "abstract"}
    snippet |= {"offsetInBeginSection": 5, "offsetInEndSection": 7, "text": "is", **fields}
    answer = read_one(bioasq(tmp_path / "a", snippets=[snippet]))
    assert (set(answer.cited), answer.quoted) == ({7, 8}, [])


def test_biogen_runs_cite_by_sentence(tmp_path: Path) -> None:
    a = {
        "metadata": {"qa_id": 3},
        "answer": [
            {
                "text": "T.",
                "existing_supported_citations": ["7"],
                "supported_citations": [8],
                "contradicted_citations": ["9"],
            }
        ],
    }
    b = {"metadata": {"topic_id": "4"}, "responses": [{"text": "T.", "citations": {"10": 1}}]}
    first, second = read_answers(write_lines(tmp_path / "a", a, b))
    assert (first.id, sorted(first.cited)) == ("3", [7, 8, 9])
    assert (second.id, second.cited) == ("4", {10: ["sentence 1"]})


def test_a_biogen_run_as_one_list_is_read_too(tmp_path: Path) -> None:
    row = {"metadata": {"topic_id": "4"}, "responses": [{"text": "T.", "citations": [10]}]}
    (tmp_path / "a").write_text(json.dumps([row], indent=1))
    assert read_one(tmp_path / "a").cited == {10: ["sentence 1"]}


def test_what_is_no_stored_answer_is_refused_by_its_place(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for text, message in [
        ("", "is empty"),
        ("{", "not JSON"),
        ('{"error": "late"}', "not the form"),
        ('{"questions": []}', "holds no answer"),
        ('{"ideal": []}\n{"error": 1}', "line 2: no answer"),
        ('{"ideal": [{"pmids": ["x"]}]}', "line 1, sentence 1: 'x' is no PMID"),
        ('{"ideal": [{"pmids": 7}]}', "ideal 1: field pmids must be a list"),
        ('{"ideal": [7]}', "ideal 1: must be an object"),
        ('{"ideal": [], "evidence": [{}]}', "evidence 1: field passage: must be an object"),
        ('{"questions": [{"id": "q", "documents": ["http://x"]}]}', "'http://x' is no PMID"),
    ]:
        with subtests.test(text=text, message=message):
            tmp_path = tmp_path_factory.mktemp("case")
            (tmp_path / "a").write_text(text)
            with pytest.raises(InputError, match=message):
                list(read_answers(tmp_path / "a"))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_answers(tmp_path / "absent"))
    (tmp_path / "a").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match="not in UTF-8"):
        list(read_answers(tmp_path / "a"))


def test_the_verdict_is_read_wherever_a_format_has_it(tmp_path: Path) -> None:
    row = reply((7,))
    assert read_one(write_lines(tmp_path / "a", row)).verdict == "answered"
    metadata = {"topic_id": "4", "verdict": "mixed"}
    topic = {"metadata": metadata, "responses": [{"text": "T.", "citations": [10]}]}
    assert read_one(write_lines(tmp_path / "b", topic)).verdict == "mixed"


def test_answers_stored_before_there_were_verdicts_are_still_read(tmp_path: Path) -> None:
    row = reply((7,), evidence=[evidence_of(IRON, 0, 4)])
    for name in ("verdict", "confidence", "guess"):
        del row[name]
    del row["evidence"][0]["stance_on"]
    answer = read_one(write_lines(tmp_path / "a", row))
    assert (answer.verdict, list(answer.cited)) == ("", [7])
