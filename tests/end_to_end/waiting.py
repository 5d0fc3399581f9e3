"""Wait for a condition in other processes, and run threads meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import httpx

DEADLINE_S = 480.0
Found = TypeVar("Found")


def await_that(
    holds: Callable[[], Found],
    said: Callable[[], str] = str,
    *,
    seconds: float = DEADLINE_S,
    every_s: float = 0.02,
    starting: bool = False,
) -> Found:
    """Wait until `holds` returns a true value, and return it; fail with `said()` after `seconds`.

    If a server is `starting`, its errors and incomplete replies count as false.
    """
    begun = time.monotonic()
    not_yet = (httpx.HTTPError, ValueError, KeyError) if starting else ()
    while True:
        with suppress(*not_yet):
            if found := holds():
                return found
        assert time.monotonic() - begun < seconds, said()
        time.sleep(every_s)


@contextmanager
def meanwhile(*works: Callable[[threading.Event], object]) -> Iterator[None]:
    """Run each function in a thread; the event that it is called with is set as the block ends."""
    over = threading.Event()
    threads = [threading.Thread(target=work, args=(over,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
