"""Interface between the HTTP routes and the question-answering graph."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol, TypeVar

from cluster.answers import Answer, SearchResult
from serve.contracts.answer_events import Event, Finished
from serve.contracts.readiness import Readiness
from serve.contracts.request import Request
from serve.contracts.stage_watch import StageLostError
from serve.http.middleware.request_log import NOTES, Meters
from serve.pipeline.answer_question import QuestionAnswerer

R = TypeVar("R", bound=SearchResult)


class Graph(Protocol):
    """Question-answering graph, which runs in this process or on Ray."""

    answerer: QuestionAnswerer

    def loading(self) -> list[str]:
        """Return the stages that are not ready yet."""
        ...

    async def readiness(self) -> Readiness:
        """Return which stages are loaded and which versions they serve."""
        ...

    async def metrics(self) -> bytes:
        """Return the metrics of the whole graph in Prometheus' text format."""
        ...


class Service:
    """The graph and its answerer for the routes, which record each result that they return."""

    def __init__(self, graph: Graph, meters: Meters, *, log_questions: bool) -> None:
        self.graph = graph
        self.answerer = graph.answerer
        self._meters = meters
        self._log_questions = log_questions

    def record(self, result: R) -> R:
        """Log and count a search result or an answer with its degradations, and return it."""
        kind = "answer" if isinstance(result, Answer) else "search"
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
        return result

    async def answer_events(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the progress events of an answer; the last one, Finished, is recorded."""
        async with aclosing(self.answerer.answer_events(request)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    self.record(event.answer)
                yield event


def require_ready(service: Service) -> None:
    """Raise StageLostError with the names of the stages that are still loading."""
    if loading := service.graph.loading():
        raise StageLostError(f"still loading: {', '.join(loading)}; try again in a moment")
