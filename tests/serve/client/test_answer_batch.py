import io
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cluster.answers import Question
from cluster.errors import CiteRayError, InputError
from serve.client.answer_batch import answer_batch, bioasq_batch
from serve.client.call_endpoint import Endpoint
from serve.client.open_client import HttpClient, Reply
from tests.serve.api import client_of
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTIONS = [
    Question("q3", "Does metformin activate AMPK?", "yesno"),
    Question("q1", "Which enzyme does warfarin inhibit?", "factoid"),
    Question("q2", "What does imatinib inhibit?", "summary"),
]


class ServiceClient(HttpClient):
    """Client of the API over a small index, without a socket; fails for the ids in `lost`."""

    def __init__(self, service: SmallService, lost: Sequence[str] = ()) -> None:
        http: Any = client_of(service)
        self._endpoint = Endpoint("http://localhost", 60, http=http)
        self._lost = lost
        self._lock = threading.Lock()
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def post(self, path: str, request: Mapping[str, Any]) -> Reply:
        with self._lock:
            self.asked.append((path, request))
        if request.get("id") in self._lost:
            raise CiteRayError(f"{request['id']} is lost")
        return super().post(path, request)

    def ids(self) -> list[str]:
        return [request["id"] for _, request in self.asked if "id" in request]


def run(
    client: ServiceClient,
    output: Path,
    questions: Sequence[Question] = QUESTIONS,
    *,
    answers: bool = True,
    system: str = "bm25",
    concurrent: int = 1,
) -> dict[str, dict[str, int]]:
    console = Console(file=io.StringIO())
    batch = bioasq_batch(questions, system, answers=answers)
    return answer_batch(
        client, batch, output, system, answers=answers, concurrent=concurrent, log=console
    )


def entries(output: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output.read_text())["questions"]
    return found


def test_number_of_documents_can_be_set(service: SmallService, tmp_path: Path) -> None:
    client, console = ServiceClient(service), Console(file=io.StringIO())
    batches = [bioasq_batch(QUESTIONS, "dense", answers=False, documents=n) for n in (1, 3)]
    for documents, batch in zip((1, 3), batches, strict=True):
        output = tmp_path / f"{documents}.json"
        answer_batch(client, batch, output, "dense", answers=False, concurrent=1, log=console)
        assert {len(entry["documents"]) for entry in entries(output)} == {documents}
    # An interrupted run is not resumed with another number of documents.
    assert batches[0].inputs != batches[1].inputs


@pytest.mark.parametrize("concurrent", [1, 3])
def test_run_has_complete_entries_in_the_order_of_the_questions(
    service: SmallService, tmp_path: Path, concurrent: int
) -> None:
    output = tmp_path / "run.json"
    run(ServiceClient(service), output, concurrent=concurrent)
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
        run(client, output, [])
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
