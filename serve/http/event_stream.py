"""An answer as server-sent events: progress events, then the answer.

| event | data |
| --- | --- |
| `stage` | `{"stage", "ms"}`: a stage has ended |
| `evidence` | the response of `/v1/search` |
| `draft` | `{"text"}`: the model's output as it is generated, not yet checked |
| `part` | `{"number", "of", "answer"}`: the answer to one part of a question with several |
| `answer` | the response of `/v1/answer` without `stream`; the last event |
| `error` | a problem (`serve.contracts.problem_forms`); sent instead of `answer` |
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent

from cluster.errors import InputError
from serve.contracts.answer_events import Drafted, Event, Finished, Found, PartAnswered, StageDone
from serve.contracts.problem_forms import problem_of
from serve.contracts.stage_watch import StageLostError

log = logging.getLogger("citeray")
# At level DEBUG, sse_starlette would log every event, including the question.
logging.getLogger("sse_starlette").setLevel(logging.INFO)

# Proxies close idle connections. An SSE comment every PING_S seconds keeps the stream open.
PING_S = 15
NAMES = ("stage", "evidence", "draft", "part", "answer", "error")


def as_named(event: Event) -> tuple[str, dict[str, Any]]:
    """Return the name of the event in the stream, and its JSON data."""
    match event:
        case StageDone():
            return "stage", asdict(event)
        case Found():
            return "evidence", asdict(event.result)
        case Drafted():
            return "draft", asdict(event)
        case PartAnswered():
            return "part", asdict(event)
        case Finished():
            return "answer", asdict(event.answer)


def as_failure(error: Exception) -> tuple[int, str]:
    """Return (HTTP status, message) for an exception; log unexpected ones."""
    if isinstance(error, StageLostError):
        return 503, str(error)
    if isinstance(error, InputError):
        return 422, str(error)
    log.error("an answer failed", exc_info=error)
    return 500, "internal error; see the server's log"


def event_stream(events: AsyncGenerator[Event, None]) -> EventSourceResponse:
    """Stream `events` as server-sent events. A client disconnect cancels the work."""

    async def wire() -> AsyncIterator[ServerSentEvent]:
        try:
            async with aclosing(events):
                async for event in events:
                    name, data = as_named(event)
                    yield sent(data, name)
        except Exception as error:
            yield sent(problem_of(*as_failure(error)), "error")

    return EventSourceResponse(wire(), ping=PING_S, sep="\n")


def sent(data: dict[str, Any], name: str | None = None) -> ServerSentEvent:
    """Return a server-sent event with JSON data."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return ServerSentEvent(text, event=name, sep="\n")
