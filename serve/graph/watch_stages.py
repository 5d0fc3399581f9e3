"""Deadlines, timings and losses of the stages of one question."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable
from typing import TypeVar

from opentelemetry import trace

from cluster.errors import CiteRayError
from serve.answer_events import StageDone, Tell, tell_nobody

T = TypeVar("T")
log = logging.getLogger("citeray")
# Does nothing where no traces are asked for.
TRACER = trace.get_tracer("citeray")


class StageLostError(CiteRayError):
    """A stage failed or was late, and the question cannot go on without it."""


class StageWatch:
    """Runs stages under their deadlines; what is lost is noted, never silent.

    `timings_ms` is how long each stage was at work, in milliseconds of the wall clock: what
    runs at once, as shards do, counts once. `degraded` names each lost stage once, in the
    order of loss. `model_calls` counts what language models were asked. `tell` is told of each
    stage as it ends. `spare_s` is how long stages that a reply can do without may be at work,
    where the question has a budget.
    """

    def __init__(
        self, deadline_s: float, tell: Tell = tell_nobody, spare_s: float = math.inf
    ) -> None:
        self.tell = tell
        self._ends = time.monotonic() + deadline_s
        self._spare_ends = time.monotonic() + spare_s
        self._running: Counter[str] = Counter()
        self._since: dict[str, float] = {}
        self.timings_ms: dict[str, float] = {}
        self.degraded: list[str] = []
        self.model_calls = 0

    def note(self, loss: str) -> None:
        """Add `loss` to `degraded`, once however often it is noted."""
        if loss not in self.degraded:
            self.degraded.append(loss)

    def _lose(self, stage: str, how: str, consequence: str) -> None:
        if consequence:
            self.note(f"{stage}: {how}, {consequence}")
        else:
            log.info("stage %s: %s", stage, how)

    async def run(
        self,
        stage: str,
        work: Awaitable[T],
        deadline_s: float,
        consequence: str = "",
        *,
        spare: bool = False,
    ) -> T | None:
        """The result of `work`, or None when it failed or outran its deadline.

        A `spare` one is what a reply can do without.

        A loss is noted as `stage: late, consequence` or `stage: failed, consequence`; one without
        a consequence is logged alone.
        """
        begun = time.monotonic()
        if not self._running[stage]:
            self._since[stage] = begun
        self._running[stage] += 1
        ends = min(self._ends, self._spare_ends) if spare else self._ends
        seconds = min(deadline_s, max(ends - begun, 0.001))
        try:
            with TRACER.start_as_current_span(stage):
                return await asyncio.wait_for(work, seconds)
        except TimeoutError:
            self._lose(stage, "late", consequence)
        except CiteRayError as error:
            # It says in one sentence what a trace would bury.
            log.warning("stage %s failed: %s", stage, error)
            self._lose(stage, "failed", consequence)
        except Exception:
            log.exception("stage %s failed", stage)
            self._lose(stage, "failed", consequence)
        finally:
            self._running[stage] -= 1
            if not self._running[stage]:
                spent = (time.monotonic() - self._since[stage]) * 1000
                self.timings_ms[stage] = round(self.timings_ms.get(stage, 0.0) + spent, 1)
                self.tell(StageDone(stage, self.timings_ms[stage]))
        return None
