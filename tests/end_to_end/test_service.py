"""Streaming, cancellation, keys, metrics, traces, restarts and shutdown of a running service."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import threading
import time
from typing import Any

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster.answers import Answer, SearchResult
from cluster.settings.read_config import CONFIGS
from serve.client.call_endpoint import API_KEY_ENV
from serve.client.python_client import CiteRay
from tests.end_to_end.command import KEY
from tests.end_to_end.running_service import SAID, Service
from tests.end_to_end.two_nodes import title_of
from tests.end_to_end.waiting import await_that, meanwhile

pytestmark = [pytest.mark.durability, pytest.mark.ray, pytest.mark.nightly]

QUESTION = "Does metformin activate AMPK?"


def asked(system: str = "citeray-model", stream: bool = True) -> dict[str, object]:
    return {"question": QUESTION, "type": "summary", "system": system, "stream": stream}


def test_drafts_are_streamed_while_the_model_writes(service: Service) -> None:
    service.model.pace_s = 0.2
    arrived: list[tuple[str, float]] = []
    with service.http.stream("POST", "/v1/answer", json=asked()) as reply:
        for line in reply.iter_lines():
            if line.startswith("event: "):
                arrived.append((line.removeprefix("event: "), time.monotonic()))
    drafts = [at for name, at in arrived if name == "draft"]
    assert len(drafts) == len(SAID.split())
    # Words are sent 0.2 s apart, so that they cannot have arrived at once.
    assert drafts[-1] - drafts[0] > 0.4
    assert arrived[-1][0] == "answer"


@pytest.mark.parametrize("how", ["stream", "at once", "tool"])
def test_client_disconnect_cancels_the_model_request(service: Service, how: str) -> None:
    model = service.model
    model.pace_s, model.ended = 10.0, []
    begun = model.begun

    async def ask_and_leave() -> None:
        question = asked(stream=False)
        path, body = "/v1/answer", question
        headers = dict(service.http.headers)
        if how == "tool":
            del question["stream"]
            call = {"name": "answer_question", "arguments": question}
            path, body = "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            headers["Accept"] = "application/json, text/event-stream"
        url = str(service.http.base_url)
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as leaving:
            asking = asyncio.create_task(leaving.post(path, json=body))
            while model.begun == begun and not asking.done():
                await asyncio.sleep(0.1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    if how == "stream":
        with service.http.stream("POST", "/v1/answer", json=asked()) as reply:
            next(line for line in reply.iter_lines() if line == "event: draft")
    else:
        asyncio.run(ask_and_leave())
    assert model.begun == begun + 1
    # A complete reply would take 50 seconds.
    await_that(lambda: model.ended == ["cancelled"], lambda: f"{model.ended}", seconds=60)
    model.pace_s = 0.05


def test_request_is_one_json_line_in_the_gateway_log(service: Service) -> None:
    reply = service.http.post(
        "/v1/search", json={"question": QUESTION}, headers={"X-Request-ID": "job-7"}
    )
    assert reply.headers.get_list("X-Request-ID") == ["job-7"]

    def lines() -> list[str]:
        (log,) = service.logs.glob("replica_citeray_Gateway_*.log")
        return log.read_text(encoding="utf-8").splitlines()

    def noted() -> list[dict[str, object]]:
        return [line for line in map(json.loads, lines()) if line.get("id") == "job-7"]

    (line,) = await_that(noted, every_s=0.1, seconds=60)
    assert (line["route"], line["status"], line["key"]) == ("/v1/search", 200, "alice")
    assert line["kind"] == "search"
    assert QUESTION not in "".join(lines())


def test_metrics_page_has_every_metric_of_the_dashboard(service: Service) -> None:
    board = (CONFIGS / "grafana" / "citeray.json").read_text(encoding="utf-8")
    # This service has no GPU and no language model.
    wanted = set(re.findall(r"\bray_(?!vllm_|node_gpus_|node_gram_)\w+", board))
    service.http.post("/v1/search", json={"question": QUESTION}).raise_for_status()

    def missing() -> set[str]:
        page = service.http.get("/metrics").text
        families = text_string_to_metric_families(page)
        return wanted - {sample.name for family in families for sample in family.samples}

    # No stage has failed yet.
    await_that(
        lambda: missing() <= {"ray_citeray_losses_total"},
        lambda: f"{missing()}",
        seconds=60,
        every_s=0.1,
    )


def test_question_is_one_trace_across_all_stages(service: Service) -> None:
    service.http.post("/v1/answer", json=asked(stream=False)).raise_for_status()
    wanted = {"encode", "expand", "retrieve", "write"}

    def names() -> set[str]:
        return {span.name for span in service.collector.trace_with("write")}

    await_that(lambda: wanted <= names(), lambda: f"{names()}", seconds=60, every_s=0.1)
    # The processes of the stages report spans of the same trace.
    served = " ".join(names())
    for deployment in ("Encoder", "Expander", "Shard-0000", "Writer"):
        assert deployment in served, served


def replica(service: Service, name: str) -> psutil.Process:
    """Return the replica process of the deployment `name` of this graph."""
    title = f"ray::ServeReplica:citeray:{name}"
    (only,) = [process for process in service.tree if title_of(process.pid).startswith(title)]
    return only


def test_batch_resumes_after_its_process_was_killed(service: Service) -> None:
    rows = [{"id": f"q{n}", "type": "yesno", "body": QUESTION} for n in range(40)]
    asked = {"questions": rows, "system": "hybrid", "answers": False, "id": "killed"}
    service.http.post("/v1/batches", json=asked).raise_for_status()

    def status() -> dict[str, Any]:
        reply = service.http.get("/v1/batches/killed")
        return reply.json() if reply.is_success else {"done": 0, "state": "lost"}

    await_that(lambda: status()["done"] >= 3, seconds=120, every_s=0.1)
    replica(service, "Batches").kill()
    await_that(lambda: status()["state"] == "done", lambda: f"{status()}", every_s=0.1)
    run = service.http.get("/v1/batches/killed/run").json()["questions"]
    assert [entry["id"] for entry in run] == [row["id"] for row in rows]
    assert status()["failed"] == {}
    none = service.http.get("/v1/batches/none")
    assert (none.status_code, none.json()["detail"]) == (
        404,
        "there is no batch none; it may have been deleted",
    )


@pytest.mark.parametrize("name", ["Gateway", "Expander", "Shard-0000", "Encoder", "Writer"])
def test_killed_replica_fails_no_question_and_restarts(
    service: Service, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question loses at most one stage; the client repeats those that the gateway lost.

    A search does not use the writer, so its questions request answers.
    """
    monkeypatch.setenv(API_KEY_ENV, KEY)
    found: list[SearchResult | Answer] = []
    faults: list[Exception] = []

    def ask(over: threading.Event) -> None:
        with CiteRay(str(service.http.base_url)) as client:
            while not over.is_set():
                try:
                    found.append(
                        client.answer(QUESTION) if name == "Writer" else client.search(QUESTION)
                    )
                except Exception as error:
                    faults.append(error)

    with meanwhile(ask, ask):
        await_that(lambda: len(found) > 2, lambda: f"{faults}", seconds=120)
        replica(service, name).kill()
        killed = len(found)

        def whole() -> bool:
            return len(found) > killed + 4 and not any(one.degraded for one in found[-4:])

        await_that(whole, lambda: f"{found[-1].degraded}", every_s=0.1)
    assert not faults
    assert all(len(one.degraded) <= 1 for one in found)


def test_stopped_graph_finishes_its_requests_and_refuses_new_ones(service: Service) -> None:
    """Runs last because it stops the service."""
    service.model.pace_s = 3.0
    begun = service.model.begun
    replies: list[httpx.Response] = []

    def ask() -> None:
        # The tiny reader has random weights: request the answer whatever its confidence.
        question = {**asked(stream=False), "max_wrong": 1}
        replies.append(service.http.post("/v1/answer", json=question))

    thread = threading.Thread(target=ask)
    thread.start()
    await_that(lambda: service.model.begun == begun + 1, seconds=120)
    service.process.send_signal(signal.SIGTERM)
    refused = []

    def refuses() -> bool:
        reply = service.http.post("/v1/search", json={"question": QUESTION})
        refused.append(reply)
        return reply.status_code == 503

    await_that(refuses, seconds=10, every_s=0.1)
    assert "stopping" in refused[-1].json()["detail"]
    assert refused[-1].headers["Retry-After"]
    thread.join()
    assert replies[0].status_code == 200
    assert json.loads(replies[0].text)["ideal"]
    code = service.process.wait(timeout=180)
    assert code == 128 + signal.SIGTERM, (service.folder / "serve.out").read_text()
