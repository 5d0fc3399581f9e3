"""Signals to processes that a test started; none is left stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


def send(pids: Sequence[int], number: signal.Signals) -> None:
    """Send signal `number` to the processes that still run."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Stop the processes for the length of the block."""
    send(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        send(pids, signal.SIGCONT)
