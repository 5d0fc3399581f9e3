"""Calls through handles, with fakes of the handles of Ray Serve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from cluster.answers import Question
from cluster.settings.presets import load_system
from serve.contracts.backend import HandleBackend, IndexFacts, shard_stage
from serve.contracts.request import Request
from tests.serve.awaited import awaited
from tests.serve.local_handle import LocalHandle
from tests.serve.service import CORPUS
from tests.serve.small_graph import make_answerer, parts_of


class Slow:
    async def find(self) -> None:
        await asyncio.Event().wait()

    async def stream_answer(self) -> AsyncIterator[str]:
        yield "Metformin"
        await asyncio.Event().wait()


def slow_backend() -> tuple[HandleBackend, LocalHandle]:
    handle = LocalHandle(Slow())
    stages: Any = {"expander": handle, "encoder": handle, "writer": handle}
    return HandleBackend(IndexFacts(1, 0.9, 0.4), stages, [handle]), handle


@awaited
async def test_cancelled_call_cancels_the_request() -> None:
    backend, handle = slow_backend()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(backend.call(shard_stage(0), "find"), 0.01)
    assert [response.cancelled for response in handle.responses] == [True]


@awaited
async def test_closed_stream_cancels_the_request() -> None:
    backend, handle = slow_backend()
    parts = backend.stream("writer", "stream_answer")
    assert await anext(parts) == "Metformin"
    await parts.aclose()
    assert [response.cancelled for response in handle.responses] == [True]


@pytest.mark.slow
def test_answer_through_handles_equals_that_in_process() -> None:
    answerer = make_answerer(None, CORPUS)
    question = Question("", "Does metformin activate AMPK?", "yesno")
    request = Request(question, load_system("hybrid"))
    expected = asyncio.run(answerer.answer(request))
    handles: Any = {name: LocalHandle(stage) for name, stage in parts_of(answerer).items()}
    shards = [handles.pop(shard_stage(n)) for n in range(2)]
    answerer.backend = HandleBackend(answerer.backend.facts, handles, shards)
    found = asyncio.run(answerer.answer(request))
    assert replace(found, timings_ms={}, spent=expected.spent) == replace(expected, timings_ms={})
    assert all(handle.responses for handle in (*shards, handles["encoder"], handles["writer"]))
