"""Limit the CPU time of a block, which does not depend on the load of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time


@contextmanager
def cpu_within(seconds: float, of: Callable[[], float] = thread_time) -> Iterator[None]:
    """Fail if this thread uses more CPU time within the block; waiting does not count.

    `of=time.process_time` counts all threads of this process.
    """
    begun = of()
    try:
        yield
    finally:
        assert of() - begun < seconds
