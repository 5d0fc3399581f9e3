"""No word of a question is logged, counted or traced, in whichever way it is asked.

The question has a rare word. All log records of this process are searched for it, at any level,
with tracebacks and fields.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from cluster.answers import Question
from serve.contracts import stage_watch
from serve.http.middleware.request_log import Meters
from serve.llm.chat_form import Message
from tests.serve.api import client_of
from tests.serve.batches.served import Asking, served
from tests.serve.saved.kept import saved_at
from tests.serve.service import SmallService

RARE = "zyxomethaquinone"
ASKED = f"Does {RARE} activate AMPK?"
LOST = [(), ("encode", "expand", "rerank"), ("read", "embed"), ("write",), ("shard-0", "shard-1")]


class Parrot:
    """Language model that repeats its input and ignores the requested format."""

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        return " ".join(str(message["content"]) for message in messages)


@pytest.fixture
def logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    # A gateway of an earlier test may have attached our logger to Serve's.
    monkeypatch.setattr(logging.getLogger("citeray"), "parent", logging.getLogger())
    caplog.set_level(logging.DEBUG)
    # The test's own client logs URLs with questions.
    for name in ("httpx", "httpx2", "httpcore", "httpcore2"):
        caplog.set_level(logging.WARNING, name)
    return caplog


def written(logged: pytest.LogCaptureFixture) -> str:
    """Return all log lines, and all fields of each record, as a JSON log would have them."""
    return "\n".join([logged.text, *(str(vars(record)) for record in logged.records)])


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    kept_spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept_spans))
    monkeypatch.setattr(stage_watch, "TRACER", provider.get_tracer("citeray"))
    return kept_spans


def ask_in_every_way(http: TestClient) -> list[int]:
    """Return the status of each reply."""
    chat = {"model": "citeray", "messages": [{"role": "user", "content": ASKED}]}
    call = {"name": "answer_question", "arguments": {"question": ASKED}}
    tool = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"Accept": "application/json, text/event-stream"}
    given = [{"pmid": 1, "section": "abstract", "begin": 0, "end": 9, "text": ASKED}]
    replies = [
        http.post("/v1/answer", json={"question": ASKED, "store": True}),
        http.post("/v1/answer", json={"question": ASKED, "stream": True}),
        http.post("/v1/answer", json={"question": ASKED, "evidence": given, "type": "yesno"}),
        http.post("/v1/answer", json={"question": ASKED, "turns": [{"question": ASKED}]}),
        http.post("/v1/search", json={"question": ASKED, "snippets": True, "type": "factoid"}),
        http.post("/v1/search", json={"question": ASKED * 200}),
        http.post("/v1/search", json={"question": ASKED, "system": RARE}),
        http.post("/v1/search", content=f'{{"question": "{ASKED}"'),
        http.post("/v1/chat/completions", json=chat),
        http.post("/v1/chat/completions", json={**chat, "stream": True}),
        http.post("/mcp", json=tool, headers=accept),
        http.get("/v1/suggest", params={"prefix": RARE[:8]}),
        http.get("/v1/suggest", params={"prefix": RARE}),
        http.get(f"/v1/{RARE}", params={"q": ASKED}),
        http.get("/", params={"q": ASKED}),
        http.post("/v1/watches", json={"question": ASKED}),
    ]
    return [reply.status_code for reply in replies]


@pytest.mark.slow
@pytest.mark.parametrize("lost", LOST, ids=[" and ".join(lost) or "nothing" for lost in LOST])
def test_no_word_of_a_question_is_logged_counted_or_traced(
    tmp_path: Path,
    logged: pytest.LogCaptureFixture,
    spans: InMemorySpanExporter,
    lost: tuple[str, ...],
) -> None:
    service = SmallService(broken=lost, writer=Parrot())
    meters = Mock(spec=Meters)
    saved = saved_at(tmp_path / "kept")
    statuses = ask_in_every_way(client_of(service, meters=meters, saved=saved))
    assert {200, 404, 422} <= set(statuses)
    assert (503 in statuses) == ("shard-0" in lost)
    assert spans.get_finished_spans()
    told = written(logged) + str(meters.mock_calls)
    told += "".join(span.to_json() for span in spans.get_finished_spans())
    assert "request" in told
    assert [line for line in told.splitlines() if RARE[:8] in line.lower()] == []


@pytest.mark.slow
def test_no_word_of_a_batch_is_logged(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    service = SmallService()
    asking = Asking(service)

    def fail(question: Question) -> None:
        if question.id == "q2":
            raise ValueError("a defect")

    asking.trouble = fail
    rows = [{"id": f"q{n}", "type": "yesno", "body": ASKED} for n in (1, 2)]
    with served(service, tmp_path, asking) as http:
        job = http.post("/v1/batches", json={"questions": rows, "id": "b1"}).json()
        while job["state"] in ("waiting", "running"):
            job = http.get("/v1/batches/b1").json()
    assert (job["done"], job["failed_count"]) == (1, 1)
    assert "question q2 failed" in written(logged)
    assert [line for line in written(logged).splitlines() if RARE in line] == []
