"""The lease that lets one writer at a time change an index and publish a version.

Every command that changes an index (build, update, compact, prune) holds the lease: the
file `LEASE` at the index location, which is only written by compare-and-swap.

- The holder renews it every RENEW_S seconds. It expires LEASE_S seconds after the last
  renewal by the storage's own clock, or at once if the holder's process on this machine has
  ended. The file stays after a release, so that tokens and version numbers are never reused.
- Each holder gets a fencing token, one higher than the last, and writes it into CURRENT with the
  published version. Publishing is a compare-and-swap on CURRENT as the holder last wrote it, so a
  holder that was paused until its lease expired cannot overwrite its successor.
- Version numbers are reserved in the lease before any file of a version is written. A
  reserved number is never reused, even if its version is not published.

Readers need no lease: CURRENT gives them the published version and its checksum.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cluster.errors import CiteRayError, StorageError
from cluster.index.layout import CURRENT, LEASE
from cluster.index.lease_record import (
    LeaseRecord,
    active_holders,
    may_be_replaced,
    new_record,
    record_of,
)
from cluster.index.manifest import Pointer, current_pointer, read_pointer
from cluster.storage.compare_and_swap import (
    SwapConflictError,
    read_stamped,
    require_conditional_writes,
    swap,
)
from cluster.storage.conditional_store import Stamped
from cluster.storage.locations import Location, StoredLocation
from cluster.storage.sealed_text import seal

LEASE_S = 120.0
RENEW_S = 20.0
_TRIES = 5


class LeaseHeldError(CiteRayError):
    """Another command is changing the index."""


class LeaseLostError(CiteRayError):
    """Another command took the lease, or it could not be renewed in time."""


class Lease:
    """A held lease, which `hold_lease` acquires, renews and releases."""

    def __init__(self, index: Location, record: LeaseRecord, stamped: Stamped) -> None:
        self.index = index
        self._record = record
        self._stamped = stamped
        self._renewed = time.monotonic()
        self._current: Stamped | None = None
        self._lost = ""
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._renewer = threading.Thread(target=self._renew_periodically, daemon=True)

    @property
    def token(self) -> int:
        """The fencing token: one higher than that of the previous holder."""
        return self._record.token

    @property
    def version(self) -> str | None:
        """The published version when this holder last read or wrote CURRENT."""
        if self._current is None:
            return None
        return read_pointer(self._current.data, self.index / CURRENT).version

    def check(self) -> None:
        """Raise LeaseLostError if the lease is lost. Renews it first if renewal is overdue."""
        overdue = time.monotonic() - self._renewed > LEASE_S
        if overdue and not self._released.is_set():
            self.renew()
        if self._lost:
            raise LeaseLostError(self._lost)

    def checking(self, report: Callable[[Any], None]) -> Callable[[Any], None]:
        """Wrap `report` to call `check` first, so that a job ends soon after losing its lease."""

        def checked(progress: Any) -> None:
            self.check()
            report(progress)

        return checked

    def renew(self) -> None:
        """Renew the lease. Raises LeaseLostError if it is lost, StorageError as `swap` does."""
        self._write()

    def reserve_version(self) -> str:
        """Reserve and return the name of the next version, which is never used twice."""
        self._write(version=self._record.version + 1)
        return f"v{self._record.version:06d}"

    def switch(self, version: str, sha256: str) -> None:
        """Publish `version` in one atomic step.

        Raises LeaseLostError if the lease was already lost, and CiteRayError if CURRENT was
        changed by a writer without a lease. In both cases nothing is published.
        """
        self.renew()
        data = _text(Pointer(version=version, sha256=sha256, token=self.token))
        try:
            self._current = swap(self.index / CURRENT, self._current, data)
        except SwapConflictError as error:
            self.renew()
            found = current_pointer(self.index)
            raise CiteRayError(
                f"{self.index}: {found['version'] if found else 'its CURRENT'} was changed while "
                f"this ran on top of {self.version or 'nothing'}; run it again"
            ) from error

    def fence(self) -> None:
        """Write the token into CURRENT, so that no earlier holder can publish.

        Raises LeaseLostError if a later holder has already done so.
        """
        for _ in range(_TRIES):
            found = read_stamped(self.index / CURRENT)
            if found is None:
                return
            try:
                pointer = read_pointer(found.data, self.index / CURRENT)
                if pointer.token > self.token:
                    # This holder was paused after taking the lease and has a successor.
                    self._lost = self._lost or self._lost_message()
                    raise LeaseLostError(self._lost)
                fenced = _text(pointer.model_copy(update={"token": self.token}))
                self._current = swap(self.index / CURRENT, found, fenced)
                return
            except SwapConflictError:
                continue
        raise StorageError(f"{self.index / CURRENT}: other writers keep changing it; run it again")

    def start(self) -> None:
        """Start a daemon thread that renews the lease every RENEW_S seconds."""
        active_holders.add(self._record.holder)
        self._renewer.start()

    def release(self) -> None:
        """Release the lease if it is still held; after a failure it expires by itself."""
        self._released.set()
        if self._renewer.is_alive():
            self._renewer.join()
        with suppress(CiteRayError):
            self._write(holder="")
        active_holders.discard(self._record.holder)

    def _renew_periodically(self) -> None:
        while not self._released.wait(RENEW_S):
            try:
                self.renew()
            except LeaseLostError:
                return
            except CiteRayError:
                # Retry until the renewal is overdue, which `check` reports.
                continue

    def _write(self, **changes: Any) -> None:
        with self._lock:
            if self._lost:
                raise LeaseLostError(self._lost)
            changes["renewals"] = self._record.renewals + 1
            record = self._record.model_copy(update=changes)
            begun = time.monotonic()
            try:
                self._stamped = swap(self.index / LEASE, self._stamped, _text(record))
            except SwapConflictError as error:
                self._lost = self._lost_message()
                raise LeaseLostError(self._lost) from error
            self._record, self._renewed = record, begun

    def _lost_message(self) -> str:
        found = read_stamped(self.index / LEASE)
        now = record_of(found, self.index) if found else None
        taker = f"another {now}" if now and now.holder else "another command has held it meanwhile"
        return (
            f"{self.index}: this {self._record.command} was paused or cut off for more than "
            f"{LEASE_S:.0f} s and lost its lease ({taker}); it has published nothing since then. "
            "Run it again when the other command has ended"
        )


@contextmanager
def hold_lease(index: Location, command: str) -> Iterator[Lease]:
    """Hold the lease of `index` during the `with` block, on behalf of `command` ("build").

    Raises LeaseHeldError if another command holds it, and StorageError if the index location
    is not writable or has no compare-and-swap. Errors in the block that occur after the lease
    was lost are raised as LeaseLostError.
    """
    lease = _acquire(index, command)
    lease.start()
    try:
        lease.fence()
        yield lease
    except LeaseLostError:
        raise
    except Exception as error:
        # A successor may have removed files that this holder used: report the actual cause.
        with suppress(StorageError):
            try:
                lease.renew()
            except LeaseLostError as lost:
                raise lost from error
        raise
    finally:
        lease.release()


def _acquire(index: Location, command: str) -> Lease:
    location = index / LEASE
    for _ in range(_TRIES):
        found = read_stamped(location)
        before = record_of(found, index) if found else None
        if before and found and before.holder and not may_be_replaced(before, found.age_s, LEASE_S):
            raise LeaseHeldError(
                f"{index}: another {before}; wait until it ends and run this again. If it has "
                f"crashed, its lease expires within {LEASE_S:.0f} s"
            )
        record = new_record(index, before, command)
        try:
            stamped = swap(location, found, _text(record))
        except SwapConflictError:
            continue
        if isinstance(location, StoredLocation):
            require_conditional_writes(location, stamped)
        return Lease(index, record, stamped)
    raise LeaseHeldError(f"{index}: several commands request its lease at once; run this again")


def _text(record: Pointer | LeaseRecord) -> bytes:
    return seal(record.model_dump())
