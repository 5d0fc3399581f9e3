"""Lease that lets one replica of a graph at a time open a new index version."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

# The lease of a holder that died expires after this time; a live holder renews it three times
# within it.
LEASE_S = 30.0


class VersionLease(Protocol):
    """Lease that allows one holder at a time to open a new version."""

    def acquire(self, holder: str) -> bool:
        """Acquire or renew the lease; False while another holder has it."""
        ...

    def release(self, holder: str) -> None:
        """Release the lease if `holder` still has it."""
        ...


class MemoryLease:
    """Lease that expires `lease_s` seconds after it was acquired or last renewed."""

    def __init__(
        self, lease_s: float = LEASE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._lock = threading.Lock()
        self._holder = ""
        self._ends = 0.0

    def acquire(self, holder: str) -> bool:
        """Acquire or renew the lease for `holder`; return False if another holder has it."""
        with self._lock:
            now = self._clock()
            if self._holder not in ("", holder) and now < self._ends:
                return False
            self._holder, self._ends = holder, now + self._lease_s
            return True

    def release(self, holder: str) -> None:
        """Release the lease if `holder` has it; a lease taken over by another is unaffected."""
        with self._lock:
            if self._holder == holder:
                self._holder = ""


@contextmanager
def held(lease: VersionLease, holder: str, lease_s: float = LEASE_S) -> Iterator[None]:
    """Renew the lease that `holder` has for the length of the block, then release it."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(lease_s / 3):
            # The deployment that grants the lease may be down; Serve restarts it.
            with suppress(Exception):
                lease.acquire(holder)

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        lease.release(holder)
