"""Progress events of a question, and a generator that streams them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from cluster.answers import Answer, SearchResult

E = TypeVar("E")
OVER: Any = object()


@dataclass(frozen=True, slots=True)
class StageDone:
    """A stage has ended; `ms` is its total time so far, in milliseconds."""

    stage: str
    ms: float


@dataclass(frozen=True, slots=True)
class Found:
    """The search has ended; the answer will be based on its evidence."""

    result: SearchResult


@dataclass(frozen=True, slots=True)
class Drafted:
    """A piece of the model's output, not yet checked against the evidence."""

    text: str


@dataclass(frozen=True, slots=True)
class PartAnswered:
    """Part `number` of the `of` parts of the question is answered; `number` counts from 1."""

    number: int
    of: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete; always the last event."""

    answer: Answer


Event = StageDone | Found | Drafted | PartAnswered | Finished
Tell = Callable[[Event], None]


def ignore_event(_: Event) -> None:
    """No-op listener for callers that only need the final answer."""


async def stream_events(
    work: Callable[[Callable[[E], None]], Awaitable[E]],
) -> AsyncGenerator[E, None]:
    """Yield the events that `work` emits, then its return value; re-raise its exceptions.

    Closing the generator cancels the work.
    """
    events: asyncio.Queue[E] = asyncio.Queue()
    task = asyncio.ensure_future(work(events.put_nowait))
    # Wake the listener when the work ends, fails or is cancelled.
    task.add_done_callback(lambda _: events.put_nowait(OVER))
    try:
        while (event := await events.get()) is not OVER:
            yield event
        yield task.result()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
