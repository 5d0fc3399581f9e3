from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from ray.exceptions import ActorDiedError, RayTaskError

from cluster.answers import Question
from cluster.errors import StorageError
from serve.batches.job_store import JobStore
from serve.batches.jobs import BatchError, new_job
from serve.batches.serve_jobs import ServedBatches
from serve.contracts.stage_watch import StageLostError
from serve.graph.call_handles import batches_client
from tests.serve.api import client_of
from tests.serve.awaited import awaited
from tests.serve.batches.served import QUESTIONS, ROWS, Asking, served, settings_at, store_at
from tests.serve.local_handle import LocalHandle
from tests.serve.problem import assert_refused, detail_of
from tests.serve.saved.kept import KEYS, KEYS_ENV
from tests.serve.service import SmallService

pytestmark = pytest.mark.model


def ended(http: httpx.Client, job_id: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        job: dict[str, Any] = http.get(f"/v1/batches/{job_id}", headers=headers).json()
        if job["state"] not in ("waiting", "running"):
            return job
        time.sleep(0.05)
    pytest.fail(f"{job_id} has not ended")


def test_batch_is_run_listed_and_deleted(tmp_path: Path, service: SmallService) -> None:
    with served(service, tmp_path, Asking(service)) as http:
        taken = http.post("/v1/batches", json={"questions": ROWS, "system": "hybrid"})
        assert taken.status_code == 202
        job = taken.json()
        assert (job["total"], job["system"]) == (3, "hybrid")
        job = ended(http, job["id"])
        assert (job["state"], job["done"], job["failed"]) == ("done", 3, {})
        assert job["created"] <= job["started"] <= job["ended"]
        assert job["ended"].endswith("+00:00")
        run = http.get(f"/v1/batches/{job['id']}/run")
        assert [entry["id"] for entry in run.json()["questions"]] == ["q1", "q2", "q3"]
        assert f"run-{job['id']}.json" in run.headers["content-disposition"]
        del job["failed"]
        assert http.get("/v1/batches").json() == {"batches": [job]}
        assert http.delete(f"/v1/batches/{job['id']}").json()["state"] == "done"
        assert http.get(f"/v1/batches/{job['id']}").status_code == 404
    assert not (tmp_path / "batches" / job["id"]).exists()


def test_results_are_readable_while_the_batch_runs(tmp_path: Path, service: SmallService) -> None:
    asking, looked = Asking(service), threading.Event()

    def stop_at_the_last(question: Question) -> None:
        if question.id == "q3":
            looked.wait(60)

    asking.trouble = stop_at_the_last
    with served(service, tmp_path, asking) as http:
        http.post("/v1/batches", json={"questions": ROWS, "id": "b1"})
        early: list[Any] = []
        while len(early) < 2:
            early = http.get("/v1/batches/b1/results").json()["results"]
        assert http.get("/v1/batches/b1").json()["state"] == "running"
        assert {entry["id"] for entry in early} == {"q1", "q2"}
        looked.set()
        ended(http, "b1")
        page = http.get("/v1/batches/b1/results", params={"after": 1, "count": 1}).json()
        assert [entry["id"] for entry in page["results"]] == ["q2"]
        assert http.get("/v1/batches/nope/results").status_code == 404


def test_batch_is_visible_to_its_own_key_only(
    tmp_path: Path, service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", KEYS_ENV)
    alice, bob = KEYS["alice"], KEYS["bob"]
    asked = {"questions": ROWS, "id": "mine", "answers": False}
    with served(service, tmp_path, Asking(service)) as http:
        assert http.post("/v1/batches", json=asked, headers=alice).status_code == 202
        ended(http, "mine", alice)
        for method, path in (("GET", ""), ("GET", "/run"), ("DELETE", "")):
            reply = http.request(method, f"/v1/batches/mine{path}", headers=bob)
            assert reply.status_code == 404
            assert detail_of(reply)
        assert http.get("/v1/batches", headers=bob).json() == {"batches": []}
        # Bob can use the same id, and does not learn of Alice's batch.
        taken = http.post("/v1/batches", json={**asked, "questions": ROWS[:1]}, headers=bob)
        assert (taken.status_code, taken.json()["total"]) == (202, 1)
        ended(http, "mine", bob)
        assert len(http.get("/v1/batches/mine/run", headers=bob).json()["questions"]) == 1
        assert http.delete("/v1/batches/mine", headers=bob).status_code == 200
        assert len(http.get("/v1/batches", headers=alice).json()["batches"]) == 1
        assert http.get("/v1/batches/mine/run", headers=alice).status_code == 200


def test_invalid_batch_or_id_is_refused(tmp_path: Path, service: SmallService) -> None:
    half = {**ROWS[0], "body": "half \ud800"}
    bodies: list[tuple[Any, str]] = [
        ({"questions": []}, "questions"),
        ({"questions": {"id": "q1"}}, "questions"),
        ({"questions": [{"id": "q1", "type": "yesno"}]}, "question 0 (id q1): field body"),
        ({"questions": [{**ROWS[0], "type": "x" * 9999}]}, "is not one of yesno, factoid"),
        ({"questions": [{**ROWS[0], "id": f"q{n}"} for n in range(10_001)]}, "at most 10000"),
        ({"questions": ROWS, "system": "best"}, "unknown; there are"),
        ({"questions": ROWS, "format": "trec"}, "format: must be 'bioasq'"),
        ({"questions": ROWS, "id": "../../etc"}, "id: must be 1 to 64"),
        ({"questions": ROWS, "answers": "perhaps"}, "answers: "),
        ({"questions": ROWS, "evidence": "given"}, "evidence: "),
        ({"questions": [half]}, "question 0 (id q1): body has a lone surrogate at 5"),
    ]
    with served(service, tmp_path, Asking(service)) as http:
        for body, said in bodies:
            # httpx would refuse to send the lone surrogate.
            headers = {"Content-Type": "application/json"}
            reply = http.post("/v1/batches", content=json.dumps(body), headers=headers)
            assert_refused(reply, said)
            assert http.get("/v1/batches").json() == {"batches": []}
        for job_id in ["..%2f..%2fetc", "%2e%2e", "a%00b", "-rf", "é", "a" * 65]:
            for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/run")):
                reply = http.request(method, f"/v1/batches/{job_id}{path}")
                assert reply.status_code in (404, 422)
                assert detail_of(reply)


def test_running_batch_can_be_cancelled_and_too_large_ones_are_refused(
    tmp_path: Path, service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise StorageError(f"{tmp_path}: the disk is full; free some space")

    rows = [{**ROWS[0], "id": f"q{n}", "body": "x" * 900} for n in range(10_000)]
    with served(service, tmp_path, asking := Asking(service)) as http:
        asking.trouble = lambda question: time.sleep(0.2)
        assert http.post("/v1/batches", json={"questions": rows, "id": "b1"}).status_code == 202
        assert_refused(http.get("/v1/batches/b1/run"), "has no run file yet", 409)
        cancelled = http.delete("/v1/batches/b1").json()
        assert (cancelled["state"], cancelled["total"]) == ("cancelled", 10_000)
        reply = http.post("/v1/batches", json={"questions": rows, "x": "y" * 2**21})
        assert reply.status_code == 413
        monkeypatch.setattr(JobStore, "add", full)
        reply = http.post("/v1/batches", json={"questions": ROWS})
        assert_refused(reply, "the disk is full", 507)
    assert len(asking.asked) < 100


@awaited
async def test_jobs_wait_for_the_folder_and_the_graph(
    tmp_path: Path, service: SmallService
) -> None:
    asking = Asking(service)
    async with asyncio.timeout(20):
        loaded = asyncio.Event()

        async def ready() -> None:
            await loaded.wait()

        batches = ServedBatches(settings_at(tmp_path), asking.ask, ready)
        with pytest.raises(BatchError, match="try again in a moment") as caught:
            await batches.list("")
        assert caught.value.status == 503
        with store_at(tmp_path):
            batches.begin()
            await asyncio.sleep(0.2)
            with pytest.raises(BatchError, match="another process works on"):
                await batches.list("")
        while batches._opened is None:
            await asyncio.sleep(0.01)
        job = new_job(QUESTIONS, "citeray", False, "b1")
        assert (await batches.add(job, QUESTIONS))["state"] == "waiting"
        await asyncio.sleep(0.2)
        assert asking.asked == []
        loaded.set()
        while (await batches.status("b1", ""))["state"] != "done":
            await asyncio.sleep(0.02)
        await batches.end()


def over_ray(error: Exception) -> Exception:
    trace = f"Traceback (most recent call last):\n  secret.py\n{error!r}"
    raised: Exception = RayTaskError("status", trace, error).as_instanceof_cause()
    return raised


def test_error_of_the_deployment_is_reported_without_its_traceback(
    service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, status, said in (
        (over_ray(BatchError("no batch x is here", 404)), 404, "no batch x is here"),
        (over_ray(BatchError("5 wait", 429, 60)), 429, "5 wait"),
        (over_ray(KeyError("a fault")), 500, "internal error; see the server's log"),
        (ActorDiedError(), 503, "no batch is lost, try again in a moment"),
    ):
        failing = LocalHandle(Mock(**{"status.side_effect": error}))
        http = client_of(service, batches=batches_client(failing))
        reply = http.get("/v1/batches/x")
        assert_refused(reply, said, status)
        assert "secret" not in reply.text
        assert ("retry-after" in reply.headers) == (status in (429, 503))

    silent = LocalHandle(Mock(list=lambda owner: asyncio.Event().wait()))
    monkeypatch.setattr("serve.graph.call_handles.BATCHES_DEADLINE_S", 0.1)
    with pytest.raises(StageLostError, match="does not answer"):
        asyncio.run(batches_client(silent).list(""))
