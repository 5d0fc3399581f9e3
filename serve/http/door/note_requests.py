"""Request log and metrics: one structured log line per request, and counters.

The text of a question is logged only if the settings enable it.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from cluster.answers import Answer, SearchResult
from cluster.records import Citation
from serve.answer_events import Event, Finished
from serve.http.service import Readiness, Service
from serve.question.example_questions import Example
from serve.question.understand_question import Suggestion
from serve.request import Request

log = logging.getLogger("citeray.requests")
REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# Log fields of the current request; the middleware sets a new dictionary for each.
NOTES: ContextVar[dict[str, Any]] = ContextVar("notes")


def asker() -> str:
    """Return the name of the current request's API key, or "" if the server has no keys."""
    return str(NOTES.get({}).get("key", ""))


class Meters:
    """No-op metrics, for tests and processes without Ray; subclasses record them.

    `route` is a path template of the API, never text from the client.
    """

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request by its status; 499 if the client disconnected."""

    def question(
        self, kind: str, system: str, timings_ms: Mapping[str, float], degraded: Sequence[str]
    ) -> None:
        """Count a search or an answer (`kind`) with its stage times and degradations."""

    def load(self, running: int, waiting: int) -> None:
        """Set the number of running and waiting requests of this gateway."""


def request_id_of(headers: Mapping[str, str]) -> str:
    """Return the client's `X-Request-ID` if it matches REQUEST_ID, else a new id."""
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def log_request(notes: Mapping[str, Any], route: str, status: int, begun: float) -> None:
    """Log one line; `begun` is the start time on the monotonic clock, in seconds."""
    ms = round((time.monotonic() - begun) * 1000, 1)
    log.info("request", extra={"route": route, "status": status, "ms": ms, **notes})


class NotedService:
    """Service that logs and counts each question with its timings and degradations."""

    def __init__(self, service: Service, meters: Meters, *, log_questions: bool) -> None:
        self._service = service
        self._meters = meters
        self._log_questions = log_questions

    def _note(self, kind: str, result: SearchResult) -> None:
        self._meters.question(kind, result.system, result.timings_ms, result.degraded)
        notes = {
            "kind": kind,
            "system": result.system,
            "type": result.question.type,
            "degraded": list(result.degraded),
            "coverage": result.coverage,
            "index_version": result.index_version,
            "timings_ms": dict(result.timings_ms),
        }
        if self._log_questions:
            notes["question"] = result.question.body
        NOTES.get({}).update(notes)

    async def search(self, request: Request) -> SearchResult:
        """See `Service.search`; the result is logged and counted."""
        found = await self._service.search(request)
        self._note("search", found)
        return found

    async def answer(self, request: Request) -> Answer:
        """See `Service.answer`; the result is logged and counted."""
        answer = await self._service.answer(request)
        self._note("answer", answer)
        return answer

    async def answer_events(self, request: Request) -> AsyncGenerator[Event, None]:
        """See `Service.answer_events`; the answer is logged and counted on Finished."""
        events = self._service.answer_events(request)
        try:
            async for event in events:
                if isinstance(event, Finished):
                    self._note("answer", event.answer)
                yield event
        finally:
            await events.aclose()

    async def suggest(self, prefix: str, limit: int) -> list[Suggestion]:
        """See `Service.suggest`."""
        return await self._service.suggest(prefix, limit)

    async def examples(self) -> list[Example]:
        """See `Service.examples`."""
        return await self._service.examples()

    async def citation(self, pmid: int) -> Citation | None:
        """See `Service.citation`."""
        return await self._service.citation(pmid)

    def loading(self) -> list[str]:
        """See `Service.loading`."""
        return self._service.loading()

    async def readiness(self) -> Readiness:
        """See `Service.readiness`."""
        return await self._service.readiness()

    async def metrics(self) -> bytes:
        """See `Service.metrics`."""
        return await self._service.metrics()
