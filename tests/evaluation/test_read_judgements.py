from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.bioasq.read_bioasq import read_gold
from evaluation.bioasq.read_judgements import (
    judged_documents,
    read_feedback,
    read_qrels,
    remove_judged,
)
from evaluation.bioasq.score_bioasq import score_run
from tests.evaluation.evaluate_command.small_runs import write
from tests.evaluation.lint import lint_runs


def snippet(document: str, begin: int, end: int, **more: Any) -> dict[str, Any]:
    return lint_runs.snippet(begin=begin, end=end, document=document, **more)


def test_synergy_golden_and_answer_ready_flags_are_read(tmp_path: Path) -> None:
    row = {
        "id": "1",
        "type": "yesno",
        "documents": [{"id": "http://x/pubmed/7", "golden": True}, {"id": "8", "golden": False}],
        "snippets": [snippet("9", 0, 9, golden=True), snippet("8", 0, 9, golden=False)],
        "exact_answer": "yes",
        "ideal_answer": ["Yes."],
    }
    gold = read_gold(write(tmp_path / "g", {**row, "answerReady": True}))
    entry = gold["1"]
    assert (entry.documents, entry.rejected) == (("http://x/pubmed/7",), {"8"})
    assert [s.document for s in entry.snippets] == ["9"]
    assert (entry.exact, entry.ideal) == ((("yes",),), ("Yes.",))
    assert judged_documents(gold) == {"1": {"7", "8", "9"}}
    waiting = read_gold(write(tmp_path / "b", {**row, "answerReady": False}))["1"]
    assert (waiting.exact, waiting.ideal) == (None, ())


def test_feedback_of_several_rounds_is_combined(tmp_path: Path) -> None:
    one = {"id": "1", "documents": [{"id": "7", "golden": True}], "snippets": [snippet("7", 0, 9)]}
    two = {
        "id": "1",
        "documents": [{"id": "http://x/pubmed/8", "golden": False}],
        "snippets": [snippet("8", 3, 5, golden=False)],
    }
    judged = read_feedback([write(tmp_path / "1", one), write(tmp_path / "2", two)])["1"]
    assert judged.documents == {"7", "8"}
    assert {(s.document, s.begin, s.end) for s in judged.snippets} == {("7", 0, 9), ("8", 3, 5)}


def test_judged_material_is_removed_from_gold_and_run(tmp_path: Path) -> None:
    """Gold is 7, 8, 9; the run is 7, 3, 8. As 7 was judged before, gold 8, 9 and run 3, 8 remain.

    Average precision is (1/2) / 2, recall 1/2.
    """
    row = {"id": "1", "type": "summary", "snippets": [snippet("7", 0, 9), snippet("7", 20, 29)]}
    gold = read_gold(write(tmp_path / "g", {**row, "documents": list("789")}))
    run = read_gold(write(tmp_path / "r", {**row, "documents": list("738")}))
    feedback = {"id": "1", "documents": [{"id": "7", "golden": True}]}
    feedback["snippets"] = [snippet("7", 0, 9, text="other words")]
    judged = read_feedback([write(tmp_path / "f", feedback)])["1"]
    left, said = remove_judged(gold["1"], judged), remove_judged(run["1"], judged)
    found = score_run({"1": left}, {"1": said}).values()
    assert (found["documents MAP"], found["documents recall"]) == (0.25, 0.5)
    # Only the judged span of a judged document is removed.
    assert [s.begin for s in left.snippets] == [20]


def test_invalid_feedback_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for row, said in [
        (5, "question 0: must be an object"),
        ({"documents": []}, "field id"),
        ({"id": "1", "documents": [{"golden": True}]}, "field documents must hold strings"),
        ({"id": "1", "snippets": [{"golden": True}]}, "snippet 0"),
        ({"id": "1", "documents": [{"id": "7", "golden": "false"}]}, "golden must be true or"),
    ]:
        with subtests.test(row=row), pytest.raises(InputError, match=said):
            read_feedback([write(tmp_path / "f", row)])


def test_qrels_are_read(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("1 0 7 1\n1 0 8 0\n\n2\t0\t9\t2\n", encoding="utf-8")
    assert read_qrels(path) == {"1": {"7", "8"}, "2": {"9"}}


def test_invalid_qrels_line_is_refused(tmp_path: Path) -> None:
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


def test_pool_measures_match_hand_calculation(tmp_path: Path) -> None:
    """The run is x, 7, y, 8; gold is 7, 8; y is judged. Only x is unjudged, 1/4.

    Average precision is (1/2 + 2/4) / 2; without x it is (1 + 2/3) / 2.
    """
    row = {"id": "1", "type": "summary"}
    gold = read_gold(write(tmp_path / "g", {**row, "documents": ["7", "8"]}))
    run = read_gold(write(tmp_path / "r", {**row, "documents": ["x", "7", "y", "8"]}))
    judged = judged_documents(gold, {"1": frozenset({"y"})})
    assert judged == {"1": {"7", "8", "y"}}
    nothing = read_gold(write(tmp_path / "n", {**row, "documents": []}))
    assert score_run(gold, nothing, judged).values()["documents unjudged rate at 10"] == 0
    found = score_run(gold, run, judged).values()
    assert found["documents unjudged rate at 10"] == 0.25
    assert found["documents MAP"] == 0.5
    assert found["documents condensed MAP"] == pytest.approx((1 + 2 / 3) / 2)
