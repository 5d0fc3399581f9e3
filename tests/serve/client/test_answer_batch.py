import json
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Question
from cluster.errors import CiteRayError, InputError
from serve.client.answer_batch import bioasq_batch
from tests.serve.client.service_client import ServiceClient, run_batch
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTIONS = [
    Question("q3", "Does metformin activate AMPK?", "yesno"),
    Question("q1", "Which enzyme does warfarin inhibit?", "factoid"),
    Question("q2", "What does imatinib inhibit?", "summary"),
]


def run(
    client: ServiceClient, output: Path, *, answers: bool = True, system: str = "bm25"
) -> dict[str, dict[str, int]]:
    batch = bioasq_batch(QUESTIONS, system, answers=answers)
    return run_batch(client, batch, output, system, answers=answers)


def entries(output: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output.read_text())["questions"]
    return found


def test_number_of_documents_can_be_set(service: SmallService, tmp_path: Path) -> None:
    batches = [bioasq_batch(QUESTIONS, "dense", answers=False, documents=n) for n in (1, 3)]
    for documents, batch in zip((1, 3), batches, strict=True):
        output = tmp_path / f"{documents}.json"
        run_batch(ServiceClient(service), batch, output, "dense", answers=False)
        assert {len(entry["documents"]) for entry in entries(output)} == {documents}
    # An interrupted run is not resumed with another number of documents.
    assert batches[0].inputs != batches[1].inputs


@pytest.mark.parametrize("concurrent", [1, 3])
def test_run_has_complete_entries_in_the_order_of_the_questions(
    service: SmallService, tmp_path: Path, concurrent: int
) -> None:
    output = tmp_path / "run.json"
    batch = bioasq_batch(QUESTIONS, "bm25", answers=True)
    run_batch(ServiceClient(service), batch, output, concurrent=concurrent)
    assert [e["id"] for e in entries(output)] == ["q3", "q1", "q2"]
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    first = entries(output)[0]
    assert first["documents"][0].endswith("/pubmed/1")
    assert first["snippets"][0]["document"] == first["documents"][0]
    assert first["exact_answer"] in ("yes", "no")
    assert "AMPK" in first["ideal_answer"]


def test_run_without_answers_only_searches(service: SmallService, tmp_path: Path) -> None:
    client, output = ServiceClient(service), tmp_path / "run.json"
    with pytest.raises(InputError, match="no question to answer"):
        run_batch(client, bioasq_batch([], "bm25", answers=True), output)
    assert list(tmp_path.iterdir()) == []
    assert run(client, output, answers=False) == {"degraded": {}}
    assert {path for path, _ in client.asked} == {"/v1/search"}
    assert all(e["documents"] and e["snippets"] for e in entries(output))
    assert not any("ideal_answer" in e for e in entries(output))


def test_losses_are_counted(tmp_path: Path) -> None:
    service = SmallService(broken=("rerank", "write"))
    found = run(ServiceClient(service), tmp_path / "run.json", system="citeray")
    assert found == {
        "degraded": {
            "rerank: failed, first-stage order kept": 3,
            "write: failed, evidence without an answer": 3,
        },
        "verdicts": {"not_enough_evidence": 3},
    }


def test_interrupted_batch_is_resumed_only_with_the_same_options(
    service: SmallService, tmp_path: Path
) -> None:
    output = tmp_path / "run.json"
    with pytest.raises(CiteRayError, match="q2 is lost"):
        run(ServiceClient(service, lost=["q2"]), output)
    assert not output.exists()
    assert (tmp_path / "run.json.partial").is_file()
    partial = (tmp_path / "run.json.partial").read_bytes()
    changes: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["q2"]),
        ({"system": "dense"}, ["q3", "q1", "q2"]),
        ({"answers": False}, ["q3", "q1", "q2"]),
    ]
    for change, asked in changes:
        (tmp_path / "run.json.partial").write_bytes(partial)
        again = ServiceClient(service)
        run(again, output, **change)
        assert again.ids() == asked, change
        assert [e["id"] for e in entries(output)] == ["q3", "q1", "q2"]
