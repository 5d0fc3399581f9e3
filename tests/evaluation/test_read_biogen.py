from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.biogen.read_biogen import Cited, Grounded, read_task_a, read_task_b


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


def write_lines(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def write_list(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return path


def test_task_a_as_the_track_writes_it(tmp_path: Path) -> None:
    run = read_task_a(write_lines(tmp_path / "a.jsonl", answer_a(), answer_a("117")))
    assert run["116"] == (Grounded("Aspirin thins the blood.", (1,), (2, 3), ()),)
    assert list(run) == ["116", "117"]


def test_task_b_as_the_track_writes_it(tmp_path: Path) -> None:
    run = read_task_b(write_lines(tmp_path / "b.jsonl", answer_b()))
    assert run == {"181": (Cited("It does.", (7,)),)}


def test_one_list_reads_as_its_lines(tmp_path: Path) -> None:
    rows = [answer_b(1), answer_b("2")]
    lines, whole = tmp_path / "lines", tmp_path / "list"
    assert read_task_b(write_lines(lines, *rows)) == read_task_b(write_list(whole, *rows))


def test_blank_lines_and_a_byte_order_mark_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text(f"\ufeff\n{json.dumps(answer_b())}\r\n\n", encoding="utf-8")
    assert list(read_task_b(path)) == ["181"]


def test_an_empty_file_is_a_run_without_answers(tmp_path: Path) -> None:
    assert read_task_b(write_list(tmp_path / "b.json")) == {}


def test_given_citations_may_be_null_or_left_out(tmp_path: Path) -> None:
    null, left_out = answer_a("1", existing_supported_citations=None), answer_a("2")
    del left_out["answer"][0]["existing_supported_citations"]
    run = read_task_a(write_lines(tmp_path / "a", null, left_out))
    assert [sentence.existing for said in run.values() for sentence in said] == [(), ()]


def test_contradicting_citations_is_another_name(tmp_path: Path) -> None:
    row = answer_a(contradicting_citations=[9])
    del row["answer"][0]["contradicted_citations"]
    assert read_task_a(write_lines(tmp_path / "a", row))["116"][0].contradicted == (9,)


def test_citations_may_be_the_keys_of_an_object(tmp_path: Path) -> None:
    run = read_task_b(write_lines(tmp_path / "b", answer_b(citations={"7": "why", "8": ""})))
    assert run["181"][0].pmids == (7, 8)


def test_what_is_no_pmid_is_refused(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for bad in [0, -1, "x1", "", 1.5, True, None, "\u0663"]:
        with subtests.test(bad=bad):
            tmp_path = tmp_path_factory.mktemp("case")
            path = write_lines(tmp_path / "b", answer_b(citations=[7, bad]))
            with pytest.raises(
                InputError, match=r"b: line 1 \(topic_id 181\), responses 1: field cit"
            ):
                read_task_b(path)


@pytest.mark.parametrize("field", ["text", "supported_citations", "contradicted_citations"])
def test_a_missing_field_of_a_sentence_is_named(tmp_path: Path, field: str) -> None:
    row = answer_a()
    del row["answer"][0][field]
    path = write_list(tmp_path / "a", answer_a("1"), row)
    with pytest.raises(InputError, match=rf"record 2 \(qa_id 116\), answer 1: field {field} must"):
        read_task_a(path)


def test_what_is_not_the_form_is_refused_with_its_place(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for row, said in [
        ([1], r"line 1: must be an object, not \[1\]|record 1"),
        ({"responses": []}, "line 1: field metadata: must be an object, not None"),
        ({"metadata": {}, "responses": []}, "field topic_id must be a string or whole number"),
        (answer_b(True), "field topic_id must be a string or whole number, not True"),
        (answer_b(" "), "field topic_id must be a string or whole number, not ' '"),
        ({**answer_b(), "responses": {}}, "field responses must be a list, not {}"),
        ({**answer_b(), "responses": ["x"]}, "responses 1: must be an object, not 'x'"),
        (answer_b(text=3), "field text must be a string that is not empty, not 3"),
        (answer_b(text=" "), "field text must be a string that is not empty, not ' '"),
        (answer_b(citations=7), "field citations must be a list of PMIDs, not 7"),
    ]:
        with subtests.test(row=row, said=said):
            tmp_path = tmp_path_factory.mktemp("case")
            with pytest.raises(InputError, match=said):
                read_task_b(write_lines(tmp_path / "b", row))


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps(answer_b()) + "\n{oops\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"b\.jsonl: line 2: not JSON"):
        read_task_b(path)


def test_a_list_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text("[{", encoding="utf-8")
    with pytest.raises(InputError, match=r"b\.json: not JSON"):
        read_task_b(path)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_task_b(tmp_path / "none")
    (tmp_path / "raw").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not in UTF-8"):
        read_task_b(tmp_path / "raw")


def test_two_answers_to_one_id_are_refused_be_they_number_and_string(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "b", answer_b(181), answer_b("181"))
    with pytest.raises(InputError, match="line 2: topic_id '181' has an answer before it"):
        read_task_b(path)


def test_an_id_that_the_gold_does_not_have_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a", answer_a("116"), answer_a("999"))
    with pytest.raises(InputError, match="line 2: qa_id '999' is not in the gold"):
        read_task_a(path, topics=["116"])
    assert len(read_task_a(path, topics=["116", "999"])) == 2
