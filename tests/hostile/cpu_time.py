"""Work bounded by the seconds that it computes: a busy machine does not lengthen them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time


@contextmanager
def cpu_within(seconds: float, of: Callable[[], float] = thread_time) -> Iterator[None]:
    """Fails if this thread computes for longer inside; waiting is free.

    `of=time.process_time`: all threads of this process.
    """
    begun = of()
    try:
        yield
    finally:
        assert of() - begun < seconds
