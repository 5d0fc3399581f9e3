from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.records import Passage
from evaluation.audit.read_answers import StoredAnswer, read_answers
from tests.evaluation.evaluate_command.small_runs import lines
from tests.evaluation.stored_answers import evidence_of, reply
from tests.small_index import citation

URL = "http://www.ncbi.nlm.nih.gov/pubmed/"
IRON = citation(7, "Iron is stored in ferritin.", "Iron.")


def read_one(path: Path) -> StoredAnswer:
    (answer,) = read_answers(path)
    return answer


def test_reply_citations_are_read_by_sentence(tmp_path: Path) -> None:
    row = reply((7, 8), (8,), evidence=[evidence_of(citation(9, "Zinc."), 0, 4)])
    answer = read_one(lines(tmp_path / "a", row))
    assert answer.cited == {7: ["sentence 1"], 8: ["sentence 1", "sentence 2"]}
    assert (answer.id, answer.version, answer.verdict) == ("q1", "v000001", "answered")
    # Evidence that no sentence cites is also quoted.
    assert answer.quoted == [Passage(9, "abstract", 0, 4, "Zinc")]


def test_evidence_counts_as_cited_without_sentences(tmp_path: Path) -> None:
    row = reply(evidence=[evidence_of(IRON, 0, 4), evidence_of(IRON, 5, 7)])
    answer = read_one(lines(tmp_path / "a", row))
    assert answer.described == {7: {"title": "Iron."}}
    assert answer.cited == {7: ["evidence 1", "evidence 2"]}


def test_stored_answers_are_yielded_before_a_later_error(tmp_path: Path) -> None:
    path = lines(tmp_path / "a", reply((7,)), {"ideal": "none"})
    answers = read_answers(path)
    assert next(answers).id == "q1"
    with pytest.raises(InputError, match="line 2: field ideal must be a list"):
        next(answers)


def test_bioasq_citations_are_read_by_document_and_snippet(tmp_path: Path) -> None:
    """A snippet that cannot be compared still counts as a citation."""
    snippet = {"document": f"{URL}8", "beginSection": "sections.0", "endSection": "sections.0"}
    snippet |= {"offsetInBeginSection": 5, "offsetInEndSection": 7, "text": "is"}
    odd = [{"text": None}, {"endSection": "title"}, {"offsetInBeginSection": "5"}]
    snippets = [snippet, *({**snippet, "document": f"{URL}9", **fields} for fields in odd)]
    row = {"id": "q", "documents": [f"{URL}7"], "snippets": snippets}
    (tmp_path / "a").write_text(json.dumps({"questions": [row]}, indent=1), encoding="utf-8")
    answer = read_one(tmp_path / "a")
    assert answer.id == "q"
    assert (answer.cited[7], answer.cited[8]) == (["document 1"], ["snippet 1"])
    assert len(answer.cited[9]) == 3
    assert answer.quoted == [Passage(8, "abstract", 5, 7, "is")]


def test_biogen_citations_are_read_by_sentence(tmp_path: Path) -> None:
    sentence = {
        "text": "T.",
        "existing_supported_citations": ["7"],
        "supported_citations": [8],
        "contradicted_citations": ["9"],
    }
    a = {"metadata": {"qa_id": 3}, "answer": [sentence]}
    metadata = {"topic_id": "4", "verdict": "mixed"}
    b = {"metadata": metadata, "responses": [{"text": "T.", "citations": {"10": 1}}]}
    first, second = read_answers(lines(tmp_path / "a", a, b))
    assert (first.id, sorted(first.cited)) == ("3", [7, 8, 9])
    assert (second.id, second.cited, second.verdict) == ("4", {10: ["sentence 1"]}, "mixed")
    (tmp_path / "list").write_text(json.dumps([b], indent=1))
    assert read_one(tmp_path / "list").cited == {10: ["sentence 1"]}


def test_invalid_stored_answer_is_refused_with_its_place(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for text, message in [
        ('{"error": "late"}', "not in the format"),
        ('{"questions": []}', "contains no answer"),
        ('{"ideal": []}\n{"error": 1}', "line 2: no answer"),
        ('{"ideal": [{"pmids": ["x"]}]}', "line 1, sentence 1: 'x' is not a PMID"),
        ('{"ideal": [{"pmids": 7}]}', "ideal 1: field pmids must be a list"),
        ('{"ideal": [7]}', "ideal 1: must be an object"),
        ('{"ideal": [], "evidence": [{}]}', "evidence 1: field passage: must be an object"),
        ('{"questions": [{"id": "q", "documents": ["http://x"]}]}', "'http://x' is not a PMID"),
    ]:
        with subtests.test(text=text, message=message):
            (tmp_path / "a").write_text(text)
            with pytest.raises(InputError, match=message):
                list(read_answers(tmp_path / "a"))


def test_answers_without_verdict_are_read(tmp_path: Path) -> None:
    row = reply((7,), evidence=[evidence_of(IRON, 0, 4)])
    for name in ("verdict", "confidence", "guess"):
        del row[name]
    del row["evidence"][0]["stance_on"]
    answer = read_one(lines(tmp_path / "a", row))
    assert (answer.verdict, list(answer.cited)) == ("", [7])
