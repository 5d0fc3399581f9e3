"""Progress of index jobs: bars on a terminal, log lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from commands.context import Context
from commands.terminal import make_text_column

LINE_EVERY_S = 5.0
STAGES = {"models": "fetching models", "embed": "embedding", "index": "building shards"}


def _bars(context: Context) -> Progress:
    return Progress(
        make_text_column("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        make_text_column("{task.fields[unit]}"),
        TimeRemainingColumn(),
        console=context.log,
    )


class _Lines:
    """Progress without a terminal: log lines at the start and end of a stage and at intervals."""

    def __init__(self, context: Context) -> None:
        self._log = context.log
        self._begun: dict[str, float] = {}
        self._last = 0.0

    def show(self, event: Any) -> None:
        now = time.monotonic()
        begun = self._begun.setdefault(event.stage, now)
        finished = event.done >= event.total
        if not finished and now - self._last < LINE_EVERY_S:
            return
        self._last = now
        spent = now - begun
        left = ""
        if event.done and not finished and spent > 0:
            left = f", about {spent / event.done * (event.total - event.done):.0f} s left"
        name = STAGES[event.stage]
        self._log.print(f"{name}: {event.done:,} of {event.total:,} {event.unit}{left}")


def _announced(
    announce: Callable[[Console], None], console: Console, show: Callable[[Any], None]
) -> Callable[[Any], None]:
    """Wrap `show` to call `announce` before the first event that follows the download of models."""
    left = [announce]

    def show_next(event: Any) -> None:
        if event.stage != "models" and left:
            left.pop()(console)
        show(event)

    return show_next


@contextmanager
def reporter(
    context: Context, announce: Callable[[Console], None] = lambda _: None
) -> Iterator[Any]:
    """Yield a callable that shows a progress event on standard error.

    Progress is shown as bars on a terminal, and as lines elsewhere. `announce` is called once the
    job itself begins, with the console to print to.
    """
    if not sys.stderr.isatty():
        lines = _Lines(context)
        yield _announced(announce, context.log, lines.show)
        return
    with _bars(context) as bars:
        tasks: dict[str, Any] = {}

        def show(event: Any) -> None:
            if event.stage not in tasks:
                tasks[event.stage] = bars.add_task(STAGES[event.stage], unit=event.unit)
            bars.update(tasks[event.stage], completed=event.done, total=event.total)

        yield _announced(announce, bars.console, show)
