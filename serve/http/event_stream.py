"""An answer as server-sent events: what is told while it is at work, and the answer last.

| event | data |
| --- | --- |
| `stage` | `{"stage", "ms"}`: a stage has ended |
| `evidence` | what `/v1/search` replies |
| `draft` | `{"text"}`: the model's words as it says them, checked against nothing yet |
| `answer` | what `/v1/answer` replies without `stream`, with its `verdict`; the last event |
| `error` | a problem as in a reply that fails (`problem_forms`), in the place of `answer` |
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
from serve.answer_events import Drafted, Event, Finished, Found, StageDone
from serve.graph.watch_stages import StageLostError
from serve.http.problem_forms import problem_of

log = logging.getLogger("citeray")
# At DEBUG it repeats every event, with the question in it.
logging.getLogger("sse_starlette").setLevel(logging.INFO)

# A quiet connection is cut by proxies between; a comment now and then keeps it.
PING_S = 15
NAMES = ("stage", "evidence", "draft", "answer", "error")


def as_named(event: Event) -> tuple[str, dict[str, Any]]:
    """(the event's name, its data)."""
    match event:
        case StageDone():
            return "stage", asdict(event)
        case Found():
            return "evidence", asdict(event.result)
        case Drafted():
            return "draft", asdict(event)
        case Finished():
            return "answer", asdict(event.answer)


def as_failure(error: Exception) -> tuple[int, str]:
    """(status, what to say) of what an answer ended with."""
    if isinstance(error, StageLostError):
        return 503, str(error)
    if isinstance(error, InputError):
        return 422, str(error)
    log.error("an answer failed", exc_info=error)
    return 500, "internal error; the server's log tells more"


def event_stream(events: AsyncGenerator[Event, None]) -> EventSourceResponse:
    """The response that tells `events`; who hangs up ends what makes them."""

    async def wire() -> AsyncIterator[ServerSentEvent]:
        try:
            async with aclosing(events):
                async for event in events:
                    yield _sent(*as_named(event))
        except Exception as error:
            yield _sent("error", problem_of(*as_failure(error)))

    return EventSourceResponse(wire(), ping=PING_S, sep="\n")


def _sent(name: str, data: dict[str, Any]) -> ServerSentEvent:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return ServerSentEvent(text, event=name, sep="\n")
