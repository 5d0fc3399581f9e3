"""Run the stages of one question under deadlines, and record timings and failures."""

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
from serve.contracts.answer_events import StageDone, Tell, ignore_event

T = TypeVar("T")
log = logging.getLogger("citeray")
# No-op unless tracing is enabled.
TRACER = trace.get_tracer("citeray")


class StageLostError(CiteRayError):
    """A required stage failed or timed out, so the question cannot be answered."""


class StageWatch:
    """Runs stages under their deadlines and records those that fail or time out.

    `timings_ms` is the wall-clock time of each stage in milliseconds; calls that overlap, such as
    those to the shards, count once. `degraded` lists each failed stage once, in order of failure.
    `model_calls` counts calls to language models. `tell` is called when a stage ends. `spare_s`
    limits the time of optional stages, for a question with a time budget.
    """

    def __init__(
        self, deadline_s: float, tell: Tell = ignore_event, spare_s: float = math.inf
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
        """Add `loss` to `degraded` unless it is already listed."""
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
        """Return the result of `work`, or None if it failed or exceeded its deadline.

        `spare` marks an optional stage. A failure is recorded as `stage: late, consequence` or
        `stage: failed, consequence`; without a `consequence` it is only logged.
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
            # The message is sufficient, so no traceback is logged.
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
