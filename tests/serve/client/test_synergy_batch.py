"""A Synergy round over a small index, with its run checked by the linter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serve.client.synergy_batch import synergy_batch
from tests.serve.client.service_client import ServiceClient, linted_rows, run_batch
from tests.serve.service import SmallService

BODY = "Does metformin activate AMPK or imatinib inhibit BCR-ABL?"
ROUND = [
    {"id": "r", "type": "yesno", "body": BODY, "answerReady": True},
    {"id": "w", "type": "factoid", "body": "What does warfarin inhibit?", "answerReady": False},
]


def write(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps({"questions": rows}))
    return path


def run(client: ServiceClient, folder: Path, *feedback: Path) -> dict[str, dict[str, Any]]:
    """Answer the round, check the run with the linter, and return its entries by id."""
    asked, output = write(folder / "round.json", *ROUND), folder / "run.json"
    run_batch(client, synergy_batch(asked, feedback, "bm25", answers=True), output)
    return {row["id"]: row for row in linted_rows(output, asked, "synergy")}


def judged(id_: str, pmid: int, golden: bool) -> dict[str, Any]:
    return {"id": id_, "documents": [{"id": str(pmid), "golden": golden}]}


def test_only_ready_questions_are_answered(service: SmallService, tmp_path: Path) -> None:
    # Feedback on one question does not affect another.
    path = write(tmp_path / "feedback.json", judged("w", 1, False))
    found = run(ServiceClient(service), tmp_path, path)
    assert found["r"]["documents"][0].endswith("/1")
    assert found["r"]["exact_answer"] in ("yes", "no")
    assert "AMPK" in found["r"]["ideal_answer"]
    assert found["r"]["verdict"] == "answered"
    assert 0 < found["r"]["confidence"] <= 1
    assert found["w"].keys() & {"exact_answer", "ideal_answer", "verdict"} == set()


@pytest.mark.parametrize("golden", [True, False])
def test_judged_documents_are_not_submitted_again(
    service: SmallService, tmp_path: Path, golden: bool
) -> None:
    client = ServiceClient(service)
    path = write(tmp_path / "feedback.json", judged("r", 1, golden), judged("r", 2, True))
    found = run(client, tmp_path, path)["r"]
    submitted = [*found["documents"], *(s["document"] for s in found["snippets"])]
    assert not [place for place in submitted if place.endswith(("/1", "/2"))]
    assert ("AMPK" in found["ideal_answer"]) is golden
    excluded = {
        path: request["exclude"] for path, request in client.asked if request.get("id") == "r"
    }
    assert excluded == {"/v1/search": [1, 2], "/v1/answer": [] if golden else [1]}


def test_run_is_not_resumed_after_new_feedback(service: SmallService, tmp_path: Path) -> None:
    asked = write(tmp_path / "round.json", *ROUND)
    before = synergy_batch(asked, [], "bm25", answers=True)
    path = write(tmp_path / "feedback.json", judged("r", 1, False))
    assert before.inputs == synergy_batch(asked, [], "bm25", answers=True).inputs
    assert before.inputs != synergy_batch(asked, [path], "bm25", answers=True).inputs
