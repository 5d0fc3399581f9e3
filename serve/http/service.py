"""What the gateway needs of the graph behind it, in-process or on Ray."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from pydantic import BaseModel

from cluster.answers import Answer, SearchResult
from cluster.records import Citation
from serve.answer_events import Event
from serve.graph.watch_stages import StageLostError
from serve.question.example_questions import Example
from serve.question.words.index_words import Suggestion
from serve.request import Request


class Readiness(BaseModel):
    """`coverage` is shards answering of all, as "2/2"; `stages` says "ready", "loading" or "lost".

    `versions` is what one replica of each stage that reads the index serves now, and
    `index_version` the oldest among the shards'; `refused` says of a stage why it does not
    serve what is published.
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
    """The question's path behind the gateway's routes."""

    async def search(self, request: Request) -> SearchResult:
        """Ranked citations and evidence; raises StageLostError when no shard answers."""
        ...

    async def answer(self, request: Request) -> Answer:
        """A cited answer, not_enough_evidence where the writer is lost; raises as `search`."""
        ...

    def answer_events(self, request: Request) -> AsyncGenerator[Event, None]:
        """What `answer` tells while it is at work; the last is Finished."""
        ...

    async def suggest(self, prefix: str, limit: int) -> list[Suggestion]:
        """Names that begin with `prefix`; raises StageLostError where they cannot be looked up."""
        ...

    async def examples(self) -> list[Example]:
        """Example questions whose evidence the index holds; raises as `search`."""
        ...

    async def citation(self, pmid: int) -> Citation | None:
        """The whole record, or None where the index has no live one; raises as `search`."""
        ...

    def loading(self) -> list[str]:
        """The stages that are not ready yet."""
        ...

    async def readiness(self) -> Readiness:
        """What is loaded and which versions are served now."""
        ...

    async def metrics(self) -> bytes:
        """The figures of the whole graph in Prometheus' text format."""
        ...


def require_ready(service: Service) -> None:
    """Raise StageLostError, which names them, while stages of `service` load."""
    if loading := service.loading():
        raise StageLostError(f"still loading: {', '.join(loading)}; try again in a moment")
