"""Asks saved questions again after a new version of the index, within a budget.

Each answer is kept with what changed in one transaction, so that a crash loses none and only the
question that was being asked is asked again. No question is skipped: an update changes the weights
of words in the whole collection, so that no cheap test proves an answer unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from cluster.answers import Answer
from cluster.errors import CiteRayError, one_line
from cluster.records import Citation
from serve.saved.compare_answers import read_answer, sides_of
from serve.saved.saved_error import SavedError, UnreadableAnswerError
from serve.saved.watches.source_records import changed_sources, look_up
from serve.saved.watches.watch_diff import WatchDiff, watch_diff
from serve.saved.watches.watch_store import Watch, WatchStore

log = logging.getLogger("citeray")

# Of one question: those that its answers rested on, the newest first.
MOST_SOURCES = 50


class Ask(Protocol):
    """How saved questions are asked, and the records of their sources read."""

    async def answer(self, request: Mapping[str, Any]) -> Answer:
        """The answer to a request with the fields of `/v1/answer`."""
        ...

    async def citation(self, pmid: int) -> Citation | None:
        """The whole record, or None where the index has none."""
        ...


class NotNowError(CiteRayError):
    """The answer is not one to compare with: the index moved, or a part of it is missing."""


class Budget:
    """Turns at `per_minute`, evenly spaced; `most` of them in all, where it is given."""

    def __init__(
        self,
        per_minute: float,
        most: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._every_s = 60 / per_minute
        self._left = most
        self._next = clock()
        self._clock, self._sleep = clock, sleep

    async def take(self) -> bool:
        """Wait for the next turn; False where there are no more."""
        if self._left == 0:
            return False
        if self._left is not None:
            self._left -= 1
        wait = self._next - self._clock()
        if wait > 0:
            await self._sleep(wait)
        # Time that nobody used is not made up for.
        self._next = max(self._next, self._clock()) + self._every_s
        return True


@dataclass(frozen=True, slots=True)
class Checked:
    """How a round went: questions asked, those with something to tell, and those that failed."""

    asked: int = 0
    notable: int = 0
    failed: int = 0


async def go_on_always() -> bool:
    """For a round that nothing ends but its own end."""
    return True


async def check_watches(
    store: WatchStore,
    ask: Ask,
    version: str,
    budget: Budget,
    go_on: Callable[[], Awaitable[bool]] = go_on_always,
) -> Checked:
    """Ask the questions that were not asked of `version` yet, the one asked longest ago first.

    It ends when none is left, when the budget is used up, or when `go_on` says no. One that fails
    is asked again later, at growing intervals.
    """
    asked = notable = failed = 0
    while (watch := await asyncio.to_thread(store.next_due, version)) is not None:
        # The turn may come a while after the question was due.
        if not await budget.take() or not await go_on():
            break
        asked += 1
        try:
            notable += await check_one(store, ask, version, watch)
        except SavedError:
            raise
        except Exception as error:
            failed += 1
            known = isinstance(error, CiteRayError | TimeoutError)
            log.warning("saved question %s failed: %s", watch.id, error, exc_info=not known)
            said = one_line(str(error)) if known else "internal error; the server's log tells more"
            await asyncio.to_thread(store.note_failure, watch, said or "no reply in time")
    return Checked(asked, notable, failed)


async def check_one(store: WatchStore, ask: Ask, version: str, watch: Watch) -> bool:
    """Ask one question and keep what came of it; whether there is something to tell.

    Raises NotNowError for an answer of another version, or of a part of the index.
    """
    answer = await ask.answer(watch.request)
    if answer.index_version != version:
        raise NotNowError(f"the answer was of {answer.index_version}, not of {version}")
    answering, _, all_shards = answer.coverage.partition("/")
    if answering != all_shards:
        raise NotNowError(f"only {answer.coverage} of the index answered")
    sides = sides_of(answer)
    cited = [item.pmid for item in (*sides.supporting, *sides.contradicting)]
    pmids = dict.fromkeys([*cited, *watch.sources])
    sources = await look_up(list(pmids)[:MOST_SOURCES], ask.citation)
    diff: WatchDiff | None = None
    # An answer that another version of CiteRay kept in another form: the history begins anew.
    with suppress(UnreadableAnswerError):
        if watch.answer is not None:
            before = await asyncio.to_thread(read_answer, watch.answer)
            diff = watch_diff(before, answer, changed_sources(watch.sources, sources))
    kept = await asyncio.to_thread(store.record, watch, answer, sources, diff)
    return kept and diff is not None and diff.notable
