"""Calls through handles, with fakes of the handles of Ray Serve."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Question
from cluster.index.layout import shard_of
from cluster.settings.presets import load_system
from serve.contracts.backend import HandleBackend, IndexFacts, shard_stage
from serve.contracts.request import Request
from serve.http.middleware.request_log import Meters
from serve.http.service import Service
from tests.serve.local_handle import LocalHandle
from tests.serve.service import CORPUS, SmallService
from tests.serve.small_graph import make_answerer, parts_of

ROOT = Path(__file__).resolve().parents[3]
MOST_FRAMES = 5
# A search has its own steps: checks, cascade, ranking, queries and shards.
MOST_SEARCH_FRAMES = 10


class Slow:
    async def find(self) -> None:
        await asyncio.Event().wait()

    async def write_aloud(self) -> AsyncIterator[str]:
        yield "Metformin"
        await asyncio.Event().wait()


def slow_backend() -> tuple[HandleBackend, LocalHandle]:
    handle = LocalHandle(Slow())
    stages: Any = {"expander": handle, "encoder": handle, "writer": handle}
    return HandleBackend(IndexFacts(1, 0.9, 0.4), stages, [handle]), handle


def test_cancelled_call_cancels_the_request() -> None:
    backend, handle = slow_backend()

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(backend.call(shard_stage(0), "find"), 0.01)

    asyncio.run(scenario())
    assert [response.cancelled for response in handle.responses] == [True]


def test_closed_stream_cancels_the_request() -> None:
    backend, handle = slow_backend()

    async def scenario() -> None:
        parts = backend.stream("writer", "write_aloud")
        assert await anext(parts) == "Metformin"
        await parts.aclose()

    asyncio.run(scenario())
    assert [response.cancelled for response in handle.responses] == [True]


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A service whose stages are called through handles."""
    answerer = make_answerer(tmp_path, CORPUS)
    handles: Any = {name: LocalHandle(stage) for name, stage in parts_of(answerer).items()}
    shards = [handles.pop(shard_stage(n)) for n in range(2)]
    answerer.backend = HandleBackend(answerer.backend.facts, handles, shards)
    graph = SmallService(tmp_path / "other")
    graph.answerer = answerer
    return Service(graph, Meters(), log_questions=False)


def frames() -> list[str]:
    """Return the functions of serve/ on the stack, as "module.function"."""
    stack = traceback.extract_stack()
    ours = [frame for frame in stack if frame.filename.startswith(str(ROOT / "serve"))]
    return [f"{Path(frame.filename).stem}.{frame.name}" for frame in ours]


def test_few_frames_lie_between_a_route_and_a_stage(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def await_here(work: Awaitable[Any], _: float) -> Any:
        return await work

    async def await_in_turn(*works: Awaitable[Any]) -> list[Any]:
        return [await work for work in works]

    # Both would otherwise continue in new tasks, which have their own stacks.
    monkeypatch.setattr(asyncio, "wait_for", await_here)
    monkeypatch.setattr(asyncio, "gather", await_in_turn)
    found: dict[str, list[str]] = {}

    def watched(stage: Any, method: str) -> None:
        work = getattr(stage, method)

        def call(*arguments: Any) -> Any:
            found[method] = frames()
            return work(*arguments)

        setattr(stage, method, call)

    handles = service.answerer.backend.handles  # type: ignore[attr-defined]
    number = shard_of(1, 2)
    watched(handles["expander"].stage, "suggest")
    watched(handles[shard_stage(number)].stage, "citation")
    watched(handles["writer"].stage, "write")
    watched(handles[shard_stage(1 - number)].stage, "find")
    question = Question("q", "Does metformin activate AMPK?", "yesno")

    async def ask() -> None:
        await service.answerer.suggest("metf", 3)
        await service.answerer.citation(1)
        await service.answer(Request(question, load_system("hybrid")))

    asyncio.run(ask())
    assert found.keys() == {"suggest", "citation", "write", "find"}
    assert len(found.pop("find")) <= MOST_SEARCH_FRAMES
    assert {method: len(names) for method, names in found.items() if len(names) > MOST_FRAMES} == {}
