from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from serve.formats.synergy import read_judged, read_round_questions


def write(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps({"questions": rows}))
    return path


def asked(id_: str = "q", **more: Any) -> dict[str, Any]:
    return {"id": id_, "type": "yesno", "body": "Is it?", **more}


def test_questions_have_their_readiness(tmp_path: Path) -> None:
    rows = [asked("a", answerReady=True), asked("b", answerReady=False), asked("c")]
    found = read_round_questions(write(tmp_path / "t", *rows))
    assert {item.question.id: item.ready for item in found} == {"a": True, "b": False, "c": False}
    with pytest.raises(InputError, match="id q: answerReady must be true or false, not 'yes'"):
        read_round_questions(write(tmp_path / "t", asked(answerReady="yes")))


def test_judgements_of_all_rounds_are_combined(tmp_path: Path) -> None:
    one = {"id": "q", "documents": [{"id": "7", "golden": True}, {"id": "8", "golden": False}]}
    two = {"id": "q", "snippets": [{"document": "http://x/pubmed/9", "golden": False}]}
    judged = read_judged([write(tmp_path / "1", one), write(tmp_path / "2", two)])["q"]
    assert (judged.golden, judged.rejected) == ({7}, {8, 9})
    assert judged.all == {7, 8, 9}
    # A later judgement replaces an earlier one; that of a document replaces those of its snippets.
    three = {**one, "documents": [{"id": "8"}], "snippets": [{"document": "8", "golden": False}]}
    paths = [write(tmp_path / "1", one), write(tmp_path / "2", three)]
    assert read_judged(paths)["q"].golden == {7, 8}


def test_invalid_feedback_is_named(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for row, said in [
        (7, "question 0: must be an object with an id"),
        ({"documents": []}, "question 0: must be an object with an id"),
        ({"id": "q", "documents": 5}, "field documents must be a list"),
        ({"id": "q", "documents": ["x"]}, "documents: id must end in a PMID, not 'x'"),
        ({"id": "q", "snippets": [{"golden": True}]}, "snippets: document must end in a PMID"),
        ({"id": "q", "documents": [{"id": "7", "golden": 1}]}, "golden must be true or false"),
    ]:
        with subtests.test(row=row, said=said), pytest.raises(InputError, match=said):
            read_judged([write(tmp_path / "f", row)])
