import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import pytest

from cluster.answers import Question
from cluster.errors import LLMError
from cluster.settings.presets import load_system
from serve.contracts.answer_events import Drafted, Finished, Found, StageDone, stream_events
from serve.contracts.request import Request
from serve.llm.chat_form import read_pieces
from tests.serve.awaited import awaited
from tests.serve.chat_endpoint import chat_endpoint
from tests.serve.service import SmallService

SAID = "Metformin activates AMPK in the liver of diabetic mice."


@awaited
async def test_stream_events_yields_events_while_the_work_runs() -> None:
    go_on = asyncio.Event()

    async def work(tell: Callable[[str], None]) -> str:
        tell("begun")
        await go_on.wait()
        tell("ending")
        return "over"

    async with aclosing(stream_events(work)) as events:
        assert await asyncio.wait_for(anext(events), 1) == "begun"
        go_on.set()
        assert [event async for event in events] == ["ending", "over"]


@awaited
async def test_closing_stream_events_cancels_the_work() -> None:
    ended = asyncio.Event()

    async def work(tell: Callable[[int], None]) -> int:
        tell(1)
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return 2

    async with aclosing(stream_events(work)) as events:
        await anext(events)
    assert ended.is_set()


async def lines(*texts: str) -> AsyncIterator[str]:
    for text in texts:
        yield text


def piece(text: str, finish: str | None = None) -> str:
    choice = {"delta": {"content": text}, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]})}"


@awaited
async def test_read_pieces_forwards_and_joins_chunks() -> None:
    said: list[str] = []
    reply = await read_pieces(
        lines(": a comment", piece("Met"), "", piece("formin", "stop"), "data: [DONE]"), said.append
    )
    assert said == ["Met", "formin"]
    assert reply["choices"][0] == {"message": {"content": "Metformin"}, "finish_reason": "stop"}


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        ((piece("Met"),), "the reply ended early"),
        (("data: {nonsense",), "not JSON"),
        ((piece("Met"), 'data: {"error": {"message": "out of memory"}}'), "out of memory"),
    ],
)
@awaited
async def test_incomplete_stream_raises_llm_error(stream: tuple[str, ...], reason: str) -> None:
    with pytest.raises(LLMError, match=reason):
        await read_pieces(lines(*stream), lambda _: None)


@awaited
async def test_answer_events_include_stages_and_evidence_without_a_streaming_model() -> None:
    with chat_endpoint(SAID, streams=False) as endpoint:
        service = SmallService(writer=endpoint.model())
        question = Question("", "Does metformin activate AMPK?", "summary")
        system = load_system("citeray-model")
        events = [e async for e in service.answer_events(Request(question, system, 3, False))]
    stages = [event.stage for event in events if isinstance(event, StageDone)]
    assert {"encode", "retrieve", "rerank", "write"} <= set(stages)
    found = next(event.result for event in events if isinstance(event, Found))
    assert not [event for event in events if isinstance(event, Drafted)]
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.answer.ideal[0].text == SAID
    assert last.answer.origin == "generated"
    assert last.answer.citations == found.citations
