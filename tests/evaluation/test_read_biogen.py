from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.biogen.read_biogen import Cited, Grounded, read_task_a, read_task_b
from tests.evaluation.evaluate_command.small_runs import lines


def answer_a(qa_id: Any = "116", **fields: Any) -> dict[str, Any]:
    sentence = {
        "text": "Aspirin thins the blood.",
        "existing_supported_citations": [1],
        "supported_citations": [2, "3"],
        "contradicted_citations": [],
    }
    metadata = {"team_id": "t", "run_id": "r", "qa_id": qa_id, "question": "?"}
    return {"metadata": metadata, "answer": [{**sentence, **fields}]}


def answer_b(topic_id: Any = 181, **fields: Any) -> dict[str, Any]:
    metadata = {"team_id": "t", "run_id": "r", "topic_id": topic_id}
    return {"metadata": metadata, "responses": [{"text": "It does.", "citations": [7], **fields}]}


def write_list(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return path


def test_biogen_tasks_are_read_in_the_tracks_form(tmp_path: Path) -> None:
    run = read_task_a(lines(tmp_path / "a.jsonl", answer_a(), answer_a("117")))
    assert run["116"] == (Grounded("Aspirin thins the blood.", (1,), (2, 3), ()),)
    assert list(run) == ["116", "117"]
    rows = [answer_b(), answer_b("2", citations={"7": "why", "8": ""})]
    expected = {"181": (Cited("It does.", (7,)),), "2": (Cited("It does.", (7, 8)),)}
    assert read_task_b(lines(tmp_path / "lines", *rows)) == expected
    assert read_task_b(write_list(tmp_path / "list", *rows)) == expected
    assert read_task_b(write_list(tmp_path / "none")) == {}


def test_blank_lines_and_byte_order_mark_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text(f"\ufeff\n{json.dumps(answer_b())}\r\n\n", encoding="utf-8")
    assert list(read_task_b(path)) == ["181"]


def test_task_a_accepts_missing_and_alternative_fields(tmp_path: Path) -> None:
    null = answer_a("1", existing_supported_citations=None)
    left_out = answer_a("2", contradicting_citations=[9])
    for field in ("existing_supported_citations", "contradicted_citations"):
        del left_out["answer"][0][field]
    (one,), (other,) = read_task_a(lines(tmp_path / "a", null, left_out)).values()
    assert (one.existing, other.existing, other.contradicted) == ((), (), (9,))


def test_invalid_pmid_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for bad in [0, -1, "x1", "", 1.5, True, None, "\u0663"]:
        with subtests.test(bad=bad):
            path = lines(tmp_path / "b", answer_b(citations=[7, bad]))
            with pytest.raises(
                InputError, match=r"b: line 1 \(topic_id 181\), responses 1: field cit"
            ):
                read_task_b(path)


def test_missing_sentence_field_is_refused(tmp_path: Path) -> None:
    for field in ("text", "supported_citations", "contradicted_citations"):
        row = answer_a()
        del row["answer"][0][field]
        path = write_list(tmp_path / "a", answer_a("1"), row)
        said = rf"record 2 \(qa_id 116\), answer 1: field {field} must"
        with pytest.raises(InputError, match=said):
            read_task_a(path)


def test_invalid_record_is_refused_with_its_place(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for row, said in [
        ([1], r"line 1: must be an object, not \[1\]|record 1"),
        ({"metadata": {}, "responses": []}, "field topic_id must be a string or whole number"),
        (answer_b(True), "field topic_id must be a string or whole number, not True"),
        ({**answer_b(), "responses": {}}, "field responses must be a list, not {}"),
        ({**answer_b(), "responses": ["x"]}, "responses 1: must be an object, not 'x'"),
        (answer_b(text=" "), "field text must be a string that is not empty, not ' '"),
        (answer_b(citations=7), "field citations must be a list of PMIDs, not 7"),
    ]:
        with subtests.test(row=row, said=said), pytest.raises(InputError, match=said):
            read_task_b(lines(tmp_path / "b", row))


def test_damaged_or_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    for content, said in [
        (json.dumps(answer_b()).encode() + b"\n{oops\n", r"b\.jsonl: line 2: not JSON"),
        (b"[{", r"b\.jsonl: not JSON"),
        (b"\xff\xfe\x00", "not in UTF-8"),
    ]:
        path.write_bytes(content)
        with pytest.raises(InputError, match=said):
            read_task_b(path)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_task_b(tmp_path / "none")


def test_duplicate_topic_is_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "b", answer_b(181), answer_b("181"))
    with pytest.raises(InputError, match="line 2: topic_id '181' is answered twice"):
        read_task_b(path)


def test_unknown_topic_is_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "a", answer_a("116"), answer_a("999"))
    with pytest.raises(InputError, match="line 2: qa_id '999' is not in the gold"):
        read_task_a(path, topics=["116"])
    assert len(read_task_a(path, topics=["116", "999"])) == 2
