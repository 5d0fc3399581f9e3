"""Ask saved questions again after a new version of the index, within a budget.

Each answer and its changes are stored in one transaction, so that a crash repeats only the question
that was being asked. No question is skipped: an update changes the term weights of the whole
collection, so that no cheap test proves an answer unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from cluster.answers import Answer
from cluster.errors import CiteRayError, one_line
from cluster.exposure import Exposure
from cluster.records import Citation
from serve.saved.compare_answers import read_answer, sides_of
from serve.saved.saved_error import SavedError, UnreadableAnswerError
from serve.saved.watches.source_records import changed_sources, look_up
from serve.saved.watches.watch_diff import TOP, WatchDiff, watch_diff
from serve.saved.watches.watch_store import Watch, WatchStore

log = logging.getLogger("citeray")

# Sources tracked per question; those of the newest answer come first.
MOST_SOURCES = 50


class Ask(Protocol):
    """Interface for asking questions and reading the records of their sources."""

    async def answer(self, request: Mapping[str, Any]) -> Answer:
        """Answer a request that has the fields of `/v1/answer`."""
        ...

    async def citation(self, pmid: int) -> Citation | None:
        """Return the complete record, or None if the index does not have it."""
        ...

    async def exposure(self, pmids: Sequence[int]) -> Exposure | None:
        """Return the exposure of articles to retractions; None if a shard does not answer."""
        ...


class NotNowError(CiteRayError):
    """The answer cannot be compared: the index version changed, or shards did not respond."""


class Budget:
    """Rate limiter for `per_minute` evenly spaced questions, at most `most` in total if given."""

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
        """Wait until the next question is allowed. Return False if the budget is used up."""
        if self._left == 0:
            return False
        if self._left is not None:
            self._left -= 1
        wait = self._next - self._clock()
        if wait > 0:
            await self._sleep(wait)
        # Unused time does not accumulate.
        self._next = max(self._next, self._clock()) + self._every_s
        return True


@dataclass(frozen=True, slots=True)
class Checked:
    """Numbers of questions asked in a round, of those with a notable change, and of failures."""

    asked: int = 0
    notable: int = 0
    failed: int = 0


async def go_on_always() -> bool:
    """Return True: never stop a round early."""
    return True


async def check_watches(
    store: WatchStore,
    ask: Ask,
    version: str,
    budget: Budget,
    go_on: Callable[[], Awaitable[bool]] = go_on_always,
) -> Checked:
    """Ask the questions not yet checked on index `version`, starting with the oldest check.

    Stops when no question is left, when the budget is used up, or when `go_on` returns False. A
    failed question is retried later with exponential back-off. Raises SavedError if the database
    fails.
    """
    asked = notable = failed = 0
    while (watch := await asyncio.to_thread(store.next_due, version)) is not None:
        # Call `go_on` after the wait, which may have been long.
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
            said = one_line(str(error)) if known else "internal error; see the server's log"
            await asyncio.to_thread(store.note_failure, watch, said or "no reply in time")
    return Checked(asked, notable, failed)


async def check_one(store: WatchStore, ask: Ask, version: str, watch: Watch) -> bool:
    """Ask one question and store the result. Return True if it has a notable change.

    Raises NotNowError if the answer is from another index version or if shards are missing.
    """
    answer = await ask.answer(watch.request)
    if answer.index_version != version:
        raise NotNowError(f"the answer is from index {answer.index_version}, not {version}")
    answering, _, all_shards = answer.coverage.partition("/")
    if answering != all_shards:
        raise NotNowError(f"only {answer.coverage} of the index answered")
    sides = sides_of(answer)
    cited = [item.pmid for item in (*sides.supporting, *sides.contradicting)]
    listed = [citation.pmid for citation in answer.citations[:TOP]]
    pmids = dict.fromkeys([*cited, *listed, *watch.sources])
    sources = await look_up(list(pmids)[:MOST_SOURCES], ask.citation, ask.exposure)
    diff: WatchDiff | None = None
    # An answer that another CiteRay version stored in an unreadable format restarts the history.
    with suppress(UnreadableAnswerError):
        if watch.answer is not None:
            before = await asyncio.to_thread(read_answer, watch.answer)
            diff = watch_diff(before, answer, changed_sources(watch.sources, sources))
    kept = await asyncio.to_thread(store.record, watch, answer, sources, diff)
    return kept and diff is not None and diff.notable
