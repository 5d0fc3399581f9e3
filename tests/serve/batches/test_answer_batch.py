import io
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from starlette.testclient import TestClient

from cluster.answers import Question
from cluster.errors import CiteRayError, InputError
from cluster.settings.settings import load_settings
from evaluation.lint.lint_run import check_run, read_run_file
from serve.batches.answer_batch import answer_batch, bioasq_batch
from serve.client.call_endpoint import Endpoint
from serve.client.open_client import HttpClient, Reply
from serve.http.api import create_api
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTIONS = [
    Question("q3", "Does metformin activate AMPK?", "yesno"),
    Question("q1", "Which enzyme does warfarin inhibit?", "factoid"),
    Question("q2", "What does imatinib inhibit?", "summary"),
]


class ServiceClient(HttpClient):
    """The endpoint over a small index, without a socket; `lost` are ids that it fails on."""

    def __init__(self, service: SmallService, lost: Sequence[str] = ()) -> None:
        http: Any = TestClient(create_api(service, load_settings().serve))
        self._endpoint = Endpoint("http://localhost", 60, http=http)
        self._lost = lost
        self._lock = threading.Lock()
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def _post(self, path: str, request: Mapping[str, Any]) -> Reply:
        with self._lock:
            self.asked.append((path, request))
        if request.get("id") in self._lost:
            raise CiteRayError(f"{request['id']} is lost")
        return super()._post(path, request)

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


def test_a_run_can_hold_fewer_and_more_documents_than_ten(
    service: SmallService, tmp_path: Path
) -> None:
    client, console = ServiceClient(service), Console(file=io.StringIO())
    batches = [bioasq_batch(QUESTIONS, "dense", answers=False, documents=n) for n in (1, 3)]
    for documents, batch in zip((1, 3), batches, strict=True):
        output = tmp_path / f"{documents}.json"
        answer_batch(client, batch, output, "dense", answers=False, concurrent=1, log=console)
        assert {len(entry["documents"]) for entry in entries(output)} == {documents}
    # One is not continued as the other.
    assert batches[0].inputs != batches[1].inputs


def entries(output: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output.read_text())["questions"]
    return found


@pytest.mark.parametrize("concurrent", [1, 3])
def test_a_run_has_whole_entries_in_the_order_of_the_questions(
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


def test_without_answers_only_searches_are_asked(service: SmallService, tmp_path: Path) -> None:
    client = ServiceClient(service)
    assert run(client, tmp_path / "run.json", answers=False) == {"degraded": {}}
    assert {path for path, _ in client.asked} == {"/v1/search"}
    assert all(e["documents"] and e["snippets"] for e in entries(tmp_path / "run.json"))
    assert not any("ideal_answer" in e for e in entries(tmp_path / "run.json"))


def test_every_loss_is_counted_by_its_words(tmp_path: Path) -> None:
    service = SmallService(broken=("rerank", "write"))
    found = run(ServiceClient(service), tmp_path / "run.json", system="citeray")
    assert found == {
        "degraded": {
            "rerank: failed, first-stage order kept": 3,
            "write: failed, evidence without an answer": 3,
        },
        "verdicts": {"not_enough_evidence": 3},
    }


def test_a_run_has_the_best_guess_and_its_verdict_where_the_evidence_is_not_enough(
    tmp_path: Path,
) -> None:
    service = SmallService(
        tmp_path / "index", decide=lambda a: replace(a, verdict="not_enough_evidence")
    )
    run(ServiceClient(service), tmp_path / "run.json")
    first, *_ = found = entries(tmp_path / "run.json")
    assert {entry["verdict"] for entry in found} == {"not_enough_evidence"}
    assert first["exact_answer"] == "yes"
    assert "AMPK" in first["ideal_answer"]
    checked = check_run(read_run_file(tmp_path / "run.json", "bioasq"), None)
    assert checked.problems == ()


def test_a_batch_that_a_failing_question_ends_goes_on_where_it_stopped(
    service: SmallService, tmp_path: Path
) -> None:
    output = tmp_path / "run.json"
    with pytest.raises(CiteRayError, match="q2 is lost"):
        run(ServiceClient(service, lost=["q2"]), output)
    assert not output.exists()
    assert (tmp_path / "run.json.partial").is_file()
    again = ServiceClient(service)
    run(again, output)
    assert again.ids() == ["q2"]
    assert [e["id"] for e in entries(output)] == ["q3", "q1", "q2"]


@pytest.mark.parametrize("change", [{"system": "dense"}, {"answers": False}])
def test_a_batch_of_another_kind_starts_anew(
    service: SmallService, tmp_path: Path, change: dict[str, Any]
) -> None:
    output = tmp_path / "run.json"
    with pytest.raises(CiteRayError):
        run(ServiceClient(service, lost=["q2"]), output)
    again = ServiceClient(service)
    run(again, output, **change)
    assert sorted(again.ids()) == ["q1", "q2", "q3"]


def test_a_batch_of_no_questions_is_refused(service: SmallService, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no question to answer"):
        run(ServiceClient(service), tmp_path / "run.json", [])
    assert list(tmp_path.iterdir()) == []
