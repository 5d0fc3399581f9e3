"""The number of calls between the handler of a route and the stage that does its work."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

import httpx
import pytest

from cluster.index.layout import shard_of
from serve.contracts.backend import HandleBackend, LocalBackend, shard_stage
from serve.pipeline.answer_question import QuestionAnswerer
from tests.serve.api import make_api
from tests.serve.local_handle import LocalHandle
from tests.serve.service import CORPUS, SmallService
from tests.serve.small_graph import make_answerer, parts_of

ROOT = Path(__file__).resolve().parents[3]
MOST_FRAMES = 5


def in_process(answerer: QuestionAnswerer) -> None:
    answerer.backend = LocalBackend(answerer.backend.facts, **parts_of(answerer))


def through_handles(answerer: QuestionAnswerer) -> None:
    handles: Any = {name: LocalHandle(stage) for name, stage in parts_of(answerer).items()}
    shards = [handles.pop(shard_stage(n)) for n in range(2)]
    answerer.backend = HandleBackend(answerer.backend.facts, handles, shards)


def frames() -> list[str]:
    """Return the functions of serve/ on the stack above the route's, as "module.function"."""
    stack = traceback.extract_stack()
    ours = [frame for frame in stack if frame.filename.startswith(str(ROOT / "serve"))]
    names = [f"{Path(frame.filename).stem}.{frame.name}" for frame in ours]
    route = max(at for at, name in enumerate(names) if name.partition(".")[0].endswith("api"))
    return names[route + 1 :]


def keep_one_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let asyncio run work in place of new tasks and threads, which have their own stacks."""

    async def await_here(work: Awaitable[Any], *_: Any) -> Any:
        return await work

    async def await_in_turn(*works: Awaitable[Any]) -> list[Any]:
        return [await work for work in works]

    async def call_here(work: Callable[..., Any], *arguments: Any) -> Any:
        reply = work(*arguments)
        return await reply if isinstance(reply, Awaitable) else reply

    monkeypatch.setattr(asyncio, "wait_for", await_here)
    monkeypatch.setattr(asyncio, "gather", await_in_turn)
    monkeypatch.setattr(asyncio, "to_thread", call_here)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("connect", "most"),
    # `call_handle` is one more frame: it cancels the request of a cancelled call.
    [(in_process, MOST_FRAMES), (through_handles, MOST_FRAMES + 1)],
)
def test_few_frames_lie_between_a_route_and_a_stage(
    connect: Callable[[QuestionAnswerer], None], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_one_stack(monkeypatch)
    answerer = make_answerer(None, CORPUS)
    stages, found = parts_of(answerer), {}
    number = shard_of(1, 2)

    def watch(stage: str, method: str) -> None:
        work = getattr(stages[stage], method)

        @wraps(work)
        def call(*arguments: Any) -> Any:
            found[method] = frames()
            return work(*arguments)

        setattr(stages[stage], method, call)

    watch("expander", "suggest")
    watch(shard_stage(number), "citation")
    watch("writer", "write")
    watch(shard_stage(1 - number), "find")
    connect(answerer)
    graph = SmallService()
    graph.answerer = answerer
    question = {"question": "Does metformin activate AMPK?", "system": "hybrid"}

    async def ask() -> list[httpx.Response]:
        app = httpx.ASGITransport(make_api(graph))
        async with httpx.AsyncClient(transport=app, base_url="http://127.0.0.1") as http:
            return [
                await http.get("/v1/suggest", params={"prefix": "metf"}),
                await http.get("/v1/citations/1"),
                await http.post("/v1/answer", json=question),
            ]

    assert [reply.status_code for reply in asyncio.run(ask())] == [200] * 3
    assert found.keys() == {"suggest", "citation", "write", "find"}
    assert {method: names for method, names in found.items() if len(names) > most} == {}
