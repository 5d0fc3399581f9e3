"""Interface between the gateway and the question-answering graph, in-process or on Ray."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from pydantic import BaseModel

from cluster.answers import Answer, SearchResult
from cluster.records import Citation
from serve.answer_events import Event
from serve.graph.watch_stages import StageLostError
from serve.question.example_questions import Example
from serve.question.understand_question import Suggestion
from serve.request import Request


class Readiness(BaseModel):
    """State of the graph.

    `coverage` is the number of shards that answer out of all, such as "2/2". `stages` maps each
    stage to "ready", "loading" or "lost". `versions` maps each stage that reads the index to the
    version that one of its replicas serves, and `index_version` is the oldest version among the
    shards. `refused` maps a stage to the reason why it does not serve the published version.
    """

    ready: bool
    index_version: str
    last_source: str
    coverage: str
    citations: int
    models: dict[str, str]
    stages: dict[str, str]
    versions: dict[str, str]
    refused: dict[str, str]


class Service(Protocol):
    """Question-answering graph as the gateway's routes call it."""

    async def search(self, request: Request) -> SearchResult:
        """Return ranked citations and evidence; raise StageLostError if no shard answers."""
        ...

    async def answer(self, request: Request) -> Answer:
        """Return a cited answer; its verdict is not_enough_evidence if the writer is lost.

        Raise StageLostError if no shard answers.
        """
        ...

    def answer_events(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the progress events of `answer`; the last is Finished."""
        ...

    async def suggest(self, prefix: str, limit: int) -> list[Suggestion]:
        """Return names that begin with `prefix`; raise StageLostError if the lookup fails."""
        ...

    async def examples(self) -> list[Example]:
        """Return example questions whose evidence is in the index.

        Raise StageLostError if no shard answers.
        """
        ...

    async def citation(self, pmid: int) -> Citation | None:
        """Return the record, or None if the index has none or it was deleted.

        Raise StageLostError if its shard does not answer.
        """
        ...

    def loading(self) -> list[str]:
        """Return the stages that are not ready yet."""
        ...

    async def readiness(self) -> Readiness:
        """Return which stages are loaded and which versions they serve."""
        ...

    async def metrics(self) -> bytes:
        """Return the metrics of the whole graph in Prometheus' text format."""
        ...


def require_ready(service: Service) -> None:
    """Raise StageLostError with the names of the stages that are still loading."""
    if loading := service.loading():
        raise StageLostError(f"still loading: {', '.join(loading)}; try again in a moment")
