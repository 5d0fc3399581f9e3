from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from serve.answer.examples.read_examples import FewShotExample, curate_examples


def curate(tmp_path: Path, *rows: Any) -> list[FewShotExample]:
    path = tmp_path / "feedback.json"
    path.write_text(json.dumps({"questions": rows}))
    return curate_examples(path)


def question(kind: str = "list", **more: Any) -> dict[str, Any]:
    return {"id": "q", "type": kind, "body": "Which?", "ideal_answer": ["All."], **more}


def test_ready_and_gold_questions_become_examples(tmp_path: Path) -> None:
    for flag in ({}, {"answerReady": True}):
        (found,) = curate(tmp_path, question(exact_answer=[["a"]], **flag))
        assert found == FewShotExample("q", "list", "Which?", "All.", [["a"]])
    assert curate(tmp_path, question(answerReady=False)) == []
    assert curate(tmp_path, question(ideal_answer=[], exact_answer=[])) == []


def test_exact_answers_are_normalised(tmp_path: Path) -> None:
    answers: list[tuple[str, Any, Any]] = [
        ("list", "aspirin", [["aspirin"]]),
        ("list", ["aspirin", " ibuprofen."], [["aspirin"], ["ibuprofen"]]),
        ("list", [["aspirin", "ASA"], ["Aspirin"], [""]], [["aspirin", "ASA"]]),
        ("list", [{"answer": "a", "golden": True}, {"answer": "b", "golden": False}], [["a"]]),
        ("list", [], None),
        ("list", None, None),
        ("yesno", "Yes", "yes"),
        ("yesno", ["no."], "no"),
        ("yesno", [["yes"]], "yes"),
        ("yesno", "perhaps", None),
    ]
    rows = [question(kind, exact_answer=exact) for kind, exact, _ in answers]
    assert [found.exact for found in curate(tmp_path, *rows)] == [exact for *_, exact in answers]


def test_first_approved_ideal_answer_is_used(tmp_path: Path) -> None:
    for ideal, text in (
        (" One\nline. ", "One line."),
        (["First.", "Second."], "First."),
        ([{"answer": "Bad.", "golden": False}, {"answer": "Good."}], "Good."),
    ):
        (found,) = curate(tmp_path, question("summary", ideal_answer=ideal))
        assert (found.ideal, found.exact) == (text, None)


def test_invalid_file_is_named(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for row, said in [
        (7, "question 0: must be an object"),
        ({"id": "q", "type": "list"}, "body must be a string"),
        (question("riddle"), r"\(id q\): type 'riddle' is not one of"),
        (question(exact_answer=[7]), "exact_answer: must be strings"),
        (question(ideal_answer=[7]), "ideal_answer must hold strings"),
        (question(exact_answer=[{"text": "a"}]), "exact_answer: an object must hold answer"),
    ]:
        with subtests.test(row=row, said=said), pytest.raises(InputError, match=said):
            curate(tmp_path, row)
