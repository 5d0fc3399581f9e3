"""Runs and human labels of TREC BioGen are read or refused with their place."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.biogen.read_biogen import Cited, Grounded, read_task_a, read_task_b
from evaluation.biogen.read_labels import read_labels, sentence_key
from tests.evaluation.evaluate_command.small_runs import lines, write_list


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


def test_missing_sentence_field_is_refused(tmp_path: Path) -> None:
    for field in ("text", "supported_citations", "contradicted_citations"):
        row = answer_a()
        del row["answer"][0][field]
        path = write_list(tmp_path / "a", answer_a("1"), row)
        said = rf"record 2 \(qa_id 116\), answer 1: field {field} must"
        with pytest.raises(InputError, match=said):
            read_task_a(path)


BAD_PMIDS = [0, -1, "x1", "", 1.5, True, None, "\u0663"]


def test_invalid_record_is_refused_with_its_place(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    pmid = r"b: line 1 \(topic_id 181\), responses 1: field cit"
    cases: list[tuple[list[Any], str]] = [
        ([[1]], r"line 1: must be an object, not \[1\]|record 1"),
        ([{"metadata": {}, "responses": []}], "field topic_id must be a string or whole number"),
        ([answer_b(True)], "field topic_id must be a string or whole number, not True"),
        ([answer_b(181), answer_b("181")], "line 2: topic_id '181' is answered twice"),
        ([{**answer_b(), "responses": {}}], "field responses must be a list, not {}"),
        ([{**answer_b(), "responses": ["x"]}], "responses 1: must be an object, not 'x'"),
        ([answer_b(text=" ")], "field text must be a string that is not empty, not ' '"),
        ([answer_b(citations=7)], "field citations must be a list of PMIDs, not 7"),
        *(([answer_b(citations=[7, bad])], pmid) for bad in BAD_PMIDS),
    ]
    for rows, said in cases:
        with subtests.test(rows=rows), pytest.raises(InputError, match=said):
            read_task_b(lines(tmp_path / "b", *rows))


def test_unknown_topic_is_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "a", answer_a("116"), answer_a("999"))
    with pytest.raises(InputError, match="line 2: qa_id '999' is not in the gold"):
        read_task_a(path, topics=["116"])
    assert len(read_task_a(path, topics=["116", "999"])) == 2


def test_labels_are_found_by_text_and_by_number(tmp_path: Path) -> None:
    labels = read_labels(
        lines(
            tmp_path / "l.jsonl",
            {"topic_id": 1, "pmid": "5", "relation": "support", "sentence": "A b."},
            {"topic_id": "1", "pmid": 6, "relation": "neutral", "sentence_number": 2},
        )
    )
    assert labels.topics == ("1",)
    assert labels.of("1", 1, "A b.") == {5: "support"}
    assert labels.of("1", 2, "Other.") == {6: "neutral"}
    assert labels.of("1", 3, "Other.") == {}
    assert labels.of("2", 1, "A b.") == {}


def test_label_by_text_takes_precedence_and_the_last_counts(tmp_path: Path) -> None:
    by_text = {"topic_id": 1, "pmid": 5, "sentence": "A."}
    rows = [
        {**by_text, "relation": "neutral"},
        {**by_text, "relation": "support"},
        {"topic_id": 1, "pmid": 5, "relation": "contradict", "sentence_number": 1},
    ]
    assert read_labels(lines(tmp_path / "l", *rows)).of("1", 1, "A.") == {5: "support"}


def test_relations_accept_the_tracks_spellings(tmp_path: Path) -> None:
    spellings = {
        "support": ("Supports", "supported", "SUPPORTING"),
        "partial": ("partial-supported", "Partially supports", "partially-support"),
        "contradict": ("Contradicts", "contradicting"),
        "neutral": (" neutral ",),
        "irrelevant": ("not_relevant", "Not relevant", "invalid citation"),
    }
    for relation, words in spellings.items():
        rows = [
            {"topic_id": 1, "pmid": pmid, "sentence": "A.", "relation": word}
            for pmid, word in enumerate(words, start=1)
        ]
        found = read_labels(lines(tmp_path / "l", *rows)).of("1", 1, "A.")
        assert found == dict.fromkeys(range(1, len(words) + 1), relation)


def assessed(text: str, *citations: tuple[str, str]) -> dict[str, Any]:
    assessment = [{"cited_pmid": pmid, "evidence_relation": word} for pmid, word in citations]
    return {"answer_sentence": text, "citation_assessment": assessment or None}


def medaesqa(**answers: list[dict[str, Any]]) -> dict[str, Any]:
    systems = {name: {"answer_sentences": sentences} for name, sentences in answers.items()}
    return {"question_id": "9", "question": "?", "machine_generated_answers": systems}


def test_medaesqa_labels_pool_all_systems(tmp_path: Path) -> None:
    row = medaesqa(
        M1=[assessed("A.", ("1", "supporting"), ("2", "not relevant")), assessed("Uncited.")],
        M2=[assessed("B.", ("3", "contradicting"), ("4", "neutral"))],
    )
    labels = read_labels(write_list(tmp_path / "m.json", row))
    assert labels.of("9", 1, "A.") == {1: "support", 2: "irrelevant"}
    assert labels.of("9", 1, "B.") == {3: "contradict", 4: "neutral"}
    assert labels.relevant("9") == {1, 3, 4}
    assert labels.relevant("8") == set()


def test_strongest_medaesqa_label_of_a_citation_counts(tmp_path: Path) -> None:
    row = medaesqa(
        M1=[assessed("A.", ("1", "neutral"), ("1", "supporting"), ("1", "contradicting"))],
        M2=[assessed("A.", ("1", "not relevant"))],
    )
    assert read_labels(write_list(tmp_path / "m", row)).of("9", 1, "A.") == {1: "support"}


def test_invalid_label_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    good = {"topic_id": 1, "pmid": 5, "relation": "support"}
    named = {**good, "sentence": "A."}
    relation = "line 1: field relation: must be one of irrelevant, .*'maybe'"
    sentences = "answer 1: field supported_citations_labels: must be"
    for row, said in [
        ({**named, "relation": "maybe"}, relation),
        ({**named, "pmid": "x"}, "line 1: field pmid: a PMID is a whole number above 0, not 'x'"),
        ({**named, "topic_id": None}, "field topic_id"),
        ({**named, "sentence": ""}, "field sentence must be a string that is not empty"),
        *(({**good, "sentence_number": n}, "sentence_number") for n in (None, 0, "1", True)),
        (medaesqa(M1=[assessed("A.", ("x", "neutral"))]), "M1, answer_sentences 1, citation_as"),
        (medaesqa(M1=[assessed("A.", ("1", "good"))]), "field evidence_relation: must be one of"),
        ({**medaesqa(), "question_id": ""}, "line 1: field question_id"),
        ({"question_id": 1, "machine_generated_answers": []}, "machine_generated_answers: must be"),
        (answer_a(), sentences),
    ]:
        with subtests.test(row=row), pytest.raises(InputError, match=said):
            read_labels(lines(tmp_path / "l", row))


def test_labels_are_read_from_task_a_sentences(tmp_path: Path) -> None:
    row = answer_a(
        contradicted_citations=[4],
        supported_citations_labels={"2": "Supports", "3": "Neutral"},
        contradicted_citations_labels={"4": "Contradicts", "2": "Not relevant"},
    )
    found = read_labels(write_list(tmp_path / "l.json", row)).of("116", 1, row["answer"][0]["text"])
    assert found == {2: "irrelevant", 3: "neutral", 4: "contradict"}


def write_csv(path: Path, *rows: list[str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["qid", "answer_sentence", "citation", "judgement"], *rows])
    return path


def test_csv_labels_accept_multiline_citations(tmp_path: Path) -> None:
    labels = read_labels(
        write_csv(
            tmp_path / "j.CSV",
            ["116", " A, b. ", 'Title: "x"\n PMID: 12 \nAbstract: y', "Supported"],
            ["116", "A, b.", "Title: no number", "Supported"],
            ["117", "C.", "pmid:13", "not relevant"],
        )
    )
    assert labels.by_topic == {"116": {"A,b.": {12: "support"}}, "117": {"C.": {13: "irrelevant"}}}


def test_invalid_csv_label_is_refused(tmp_path: Path) -> None:
    path, names = tmp_path / "j.csv", ("qid", "answer_sentence", "citation", "judgement")
    for field, name in enumerate(names):
        row = ["116", "A.", "PMID: 1", "neutral"]
        row[field] = ""
        with pytest.raises(InputError, match=rf"line 2: field {name} is missing or empty"):
            read_labels(write_csv(path, row))
    with pytest.raises(InputError, match=r"line 2: field judgement: must be one of .*'nice'"):
        read_labels(write_csv(path, ["1", "A.", "PMID: 1", "nice"]))
    for text, said in [
        ("a,b\n1,2\n", "line 2: field qid is missing"),
        (f'qid\n"{"x" * (csv.field_size_limit() + 1)}"\n', "not CSV: field larger"),
    ]:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            read_labels(path)


def test_sentence_key_ignores_typing_differences(subtests: pytest.Subtests) -> None:
    for one, other in [
        ("A  b ( c ).", "A b (c)."),
        ("pre\u2013op \u2014 care", "pre-op-care"),
        ("It helps [123, 456].", "It helps."),
        ("It helps [PMID: 123].", "It helps."),
    ]:
        with subtests.test(one=one, other=other):
            assert sentence_key(one) == sentence_key(other)
    for other in ("It helped.", "it helps.", "It helps [a].", "It helps"):
        with subtests.test(other=other):
            assert sentence_key(other) != sentence_key("It helps.")
