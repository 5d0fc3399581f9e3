from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.bioasq.read_bioasq import read_gold
from evaluation.bioasq.read_judgements import (
    judged_documents,
    leave_out_judged,
    read_feedback,
    read_qrels,
)
from evaluation.bioasq.score_bioasq import score_run


def snippet(document: str, begin: int, end: int, **more: Any) -> dict[str, Any]:
    return {
        "document": document,
        "beginSection": "abstract",
        "endSection": "abstract",
        "offsetInBeginSection": begin,
        "offsetInEndSection": end,
        "text": "x",
        **more,
    }


def write(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps({"questions": list(rows)}), encoding="utf-8")
    return path


def test_synergys_golden_marks_tell_relevant_from_rejected(tmp_path: Path) -> None:
    row = {
        "id": "1",
        "type": "summary",
        "documents": [{"id": "7", "golden": True}, {"id": "8", "golden": False}, "9"],
        "snippets": [snippet("7", 0, 9, golden=True), snippet("8", 0, 9, golden=False)],
    }
    entry = read_gold(write(tmp_path / "g", row))["1"]
    assert entry.documents == ("7", "9")
    assert entry.rejected == {"8"}
    assert [s.document for s in entry.snippets] == ["7"]


def test_a_question_that_is_not_ready_has_no_gold_answers(tmp_path: Path) -> None:
    row = {"id": "1", "type": "yesno", "exact_answer": "yes", "ideal_answer": ["Yes."]}
    ready = read_gold(write(tmp_path / "a", {**row, "answerReady": True}))["1"]
    assert (ready.exact, ready.ideal) == ((("yes",),), ("Yes.",))
    waiting = read_gold(write(tmp_path / "b", {**row, "answerReady": False}))["1"]
    assert (waiting.exact, waiting.ideal) == (None, ())


def test_feedback_of_several_rounds_adds_up_whatever_the_judgement(tmp_path: Path) -> None:
    one = {"id": "1", "documents": [{"id": "7", "golden": True}], "snippets": [snippet("7", 0, 9)]}
    two = {
        "id": "1",
        "documents": [{"id": "http://x/pubmed/8", "golden": False}],
        "snippets": [snippet("8", 3, 5, golden=False)],
    }
    judged = read_feedback([write(tmp_path / "1", one), write(tmp_path / "2", two)])["1"]
    assert judged.documents == {"7", "8"}
    assert {(s.document, s.begin, s.end) for s in judged.snippets} == {("7", 0, 9), ("8", 3, 5)}


def test_judged_material_is_left_out_of_gold_and_run_alike(tmp_path: Path) -> None:
    """Gold 7 8 9, of which 7 was judged before; said 7 3 8. Left: gold 8 9, said 3 8.

    Average precision (1/2) / 2; recall 1/2.
    """
    gold = read_gold(
        write(tmp_path / "g", {"id": "1", "type": "summary", "documents": list("789")})
    )
    run = read_gold(write(tmp_path / "r", {"id": "1", "type": "summary", "documents": list("738")}))
    feedback = {"id": "1", "documents": [{"id": "7", "golden": True}]}
    judged = read_feedback([write(tmp_path / "f", feedback)])["1"]
    left, said = leave_out_judged(gold["1"], judged), leave_out_judged(run["1"], judged)
    found = score_run({"1": left}, {"1": said}).values()
    assert found["documents MAP"] == 0.25
    assert found["documents recall"] == 0.5


def test_of_a_judged_document_only_the_judged_span_is_left_out(tmp_path: Path) -> None:
    row = {"id": "1", "type": "summary", "snippets": [snippet("7", 0, 9), snippet("7", 20, 29)]}
    entry = read_gold(write(tmp_path / "g", row))["1"]
    feedback = {"id": "1", "snippets": [snippet("7", 0, 9, text="other words")]}
    judged = read_feedback([write(tmp_path / "f", feedback)])["1"]
    assert [s.begin for s in leave_out_judged(entry, judged).snippets] == [20]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (5, "question 0: must be an object"),
        ({"documents": []}, "field id"),
        ({"id": "1", "documents": [{"golden": True}]}, "field documents must hold strings"),
        ({"id": "1", "snippets": [{"golden": True}]}, "snippet 0"),
        ({"id": "1", "documents": [{"id": "7", "golden": "false"}]}, "golden must be true or"),
    ],
)
def test_bad_feedback_is_named(tmp_path: Path, row: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_feedback([write(tmp_path / "f", row)])


def test_qrels_give_the_judged_documents(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("1 0 7 1\n1 0 8 0\n\n2\t0\t9\t2\n", encoding="utf-8")
    assert read_qrels(path) == {"1": {"7", "8"}, "2": {"9"}}


def test_a_bad_qrels_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    for line in ("1 0 8", "1 0 8 x"):
        path.write_text(f"1 0 7 1\n{line}\n", encoding="utf-8")
        with pytest.raises(InputError, match="qrels: line 2: must be QUESTION 0 DOCUMENT GRADE"):
            read_qrels(path)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="qrels: not in UTF-8"):
        read_qrels(path)
    with pytest.raises(InputError, match="none: cannot be read"):
        read_qrels(tmp_path / "none")


def test_the_pool_measures_by_hand(tmp_path: Path) -> None:
    """Said x 7 y 8 with gold 7 8 and y judged: x alone is unjudged, 1/4.

    Plain average precision (1/2 + 2/4) / 2; over 7 y 8 it is (1 + 2/3) / 2.
    """
    row = {"id": "1", "type": "summary"}
    gold = read_gold(write(tmp_path / "g", {**row, "documents": ["7", "8"]}))
    run = read_gold(write(tmp_path / "r", {**row, "documents": ["x", "7", "y", "8"]}))
    judged = judged_documents(gold, {"1": frozenset({"y"})})
    assert judged == {"1": {"7", "8", "y"}}
    found = score_run(gold, run, judged).values()
    assert found["documents unjudged rate at 10"] == 0.25
    assert found["documents MAP"] == 0.5
    assert found["documents condensed MAP"] == pytest.approx((1 + 2 / 3) / 2)


def test_documents_of_gold_snippets_and_rejected_ones_are_judged(tmp_path: Path) -> None:
    row = {
        "id": "1",
        "type": "summary",
        "documents": ["http://x/pubmed/7", {"id": "8", "golden": False}],
        "snippets": [snippet("http://x/pubmed/9", 0, 9)],
    }
    assert judged_documents(read_gold(write(tmp_path / "g", row))) == {"1": {"7", "8", "9"}}


def test_a_run_without_documents_has_nothing_unjudged(tmp_path: Path) -> None:
    row = {"id": "1", "type": "summary", "documents": ["7"]}
    gold = read_gold(write(tmp_path / "g", row))
    run = read_gold(write(tmp_path / "r", {**row, "documents": []}))
    assert (
        score_run(gold, run, judged_documents(gold)).values()["documents unjudged rate at 10"] == 0
    )
