"""What is told while a question is at work, and the telling of it to whoever waits."""

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
    """A stage has ended; `ms` is how long it was at work, in all so far."""

    stage: str
    ms: float


@dataclass(frozen=True, slots=True)
class Found:
    """The search is over; its evidence is what the answer will rest on."""

    result: SearchResult


@dataclass(frozen=True, slots=True)
class Drafted:
    """A piece of what the model says, as it says it: not checked against the evidence yet."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is done; always the last event."""

    answer: Answer


Event = StageDone | Found | Drafted | Finished
Tell = Callable[[Event], None]


def tell_nobody(_: Event) -> None:
    """For who waits for the end alone."""


async def told(work: Callable[[Callable[[E], None]], Awaitable[E]]) -> AsyncGenerator[E, None]:
    """What `work` tells as it tells it, then what it returns; what it raises is raised here.

    Who stops listening ends the work too.
    """
    events: asyncio.Queue[E] = asyncio.Queue()
    task = asyncio.ensure_future(work(events.put_nowait))
    # Wakes the listener at the end, whichever way it came.
    task.add_done_callback(lambda _: events.put_nowait(OVER))
    try:
        while (event := await events.get()) is not OVER:
            yield event
        yield task.result()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
