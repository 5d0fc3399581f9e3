"""One at a time: who of a graph may open a new version of the index now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

# One that died is waited for so long; one at work asks again three times as often.
LEASE_S = 30.0


class Turns(Protocol):
    """A lease on opening a new version, held by one holder at a time."""

    def take(self, holder: str) -> bool:
        """Acquire or renew the lease; False while another holder has it."""
        ...

    def give_back(self, holder: str) -> None:
        """Release the lease if `holder` still has it."""
        ...


class Lease:
    """A turn that ends `lease_s` after its holder took it or last asked for it again."""

    def __init__(
        self, lease_s: float = LEASE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._lock = threading.Lock()
        self._holder = ""
        self._ends = 0.0

    def take(self, holder: str) -> bool:
        """Whether it is the turn of `holder` now; asked again by it, the turn lasts longer."""
        with self._lock:
            now = self._clock()
            if self._holder not in ("", holder) and now < self._ends:
                return False
            self._holder, self._ends = holder, now + self._lease_s
            return True

    def give_back(self, holder: str) -> None:
        """End the turn of `holder`; that of another, who took it over, goes on."""
        with self._lock:
            if self._holder == holder:
                self._holder = ""


@contextmanager
def held(turns: Turns, holder: str, lease_s: float = LEASE_S) -> Iterator[None]:
    """Make the turn that `holder` has taken last as long as the block, then give it back."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(lease_s / 3):
            # Whoever gives out the turns may be lost; it comes back.
            with suppress(Exception):
                turns.take(holder)

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        turns.give_back(holder)
