"""The lease that lets one writer at a time change an index, and the switch to its version.

Every command that changes an index (build, update, compact, prune) holds the lease: the
file `LEASE` at the index location, written by compare-and-swap alone.

- It is renewed every RENEW_S seconds. A holder that has not renewed it for LEASE_S seconds
  by the storage's own clock may be replaced, one whose process is dead on this machine at
  once. A released lease stays as a file, so that its numbers are never given out twice.
- Each holder gets a fencing token, one above the last, and writes it into CURRENT beside
  the published version. The switch is a compare-and-swap on CURRENT as its holder left it,
  so a holder that was paused past its lease cannot publish over its successor.
- Version numbers are reserved in the lease before any file of a version is written. A
  number that was reserved is never given out again, whatever became of the publish.

Readers need none of this: to them CURRENT names a version and its checksum.
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
    active_here,
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
from cluster.storage.places import Place, StoredPlace
from cluster.storage.sealed_text import seal

LEASE_S = 120.0
RENEW_S = 20.0
_TRIES = 5


class LeaseHeldError(CiteRayError):
    """Another command is changing the index."""


class LeaseLostError(CiteRayError):
    """The lease went to another command, or could not be renewed in time."""


class Lease:
    """A held lease; `hold_lease` makes it, renews it, and releases it."""

    def __init__(self, index: Place, record: LeaseRecord, stamped: Stamped) -> None:
        self.index = index
        self._record = record
        self._stamped = stamped
        self._renewed = time.monotonic()
        self._current: Stamped | None = None
        self._lost = ""
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._renewer = threading.Thread(target=self._keep, daemon=True)

    @property
    def token(self) -> int:
        """The fencing token: one above that of the lease's last holder."""
        return self._record.token

    @property
    def version(self) -> str | None:
        """The published version, as this holder found or left it."""
        if self._current is None:
            return None
        return read_pointer(self._current.data, self.index / CURRENT).version

    def check(self) -> None:
        """Raise LeaseLostError if the lease is known to be lost; asks nothing of the storage."""
        overdue = time.monotonic() - self._renewed > LEASE_S
        if overdue and not self._over.is_set():
            self.renew()
        if self._lost:
            raise LeaseLostError(self._lost)

    def checking(self, report: Callable[[Any], None]) -> Callable[[Any], None]:
        """`report`, and `check` before it, so that a long job ends soon after its lease."""

        def checked(progress: Any) -> None:
            self.check()
            report(progress)

        return checked

    def renew(self) -> None:
        """Renew the lease. Raises LeaseLostError if it is lost, StorageError as `swap`."""
        self._write()

    def reserve_version(self) -> str:
        """The name of the next version, which no other publish has had or will have."""
        self._write(version=self._record.version + 1)
        return f"v{self._record.version:06d}"

    def switch(self, version: str, sha256: str) -> None:
        """Make `version` the published one in one atomic step.

        Raises LeaseLostError where the lease was lost before, CiteRayError where CURRENT
        was changed by something that holds no lease; nothing is published then.
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
        """Write the token into CURRENT, so that no earlier holder can switch any more.

        Raises LeaseLostError where a later holder has done so.
        """
        for _ in range(_TRIES):
            found = read_stamped(self.index / CURRENT)
            if found is None:
                return
            try:
                pointer = read_pointer(found.data, self.index / CURRENT)
                if pointer.token > self.token:
                    # Stopped since it took the lease, it would fence its own successor out.
                    self._lost = self._lost or self._sentence()
                    raise LeaseLostError(self._lost)
                fenced = _text(pointer.model_copy(update={"token": self.token}))
                self._current = swap(self.index / CURRENT, found, fenced)
                return
            except SwapConflictError:
                continue
        raise StorageError(f"{self.index / CURRENT}: is rewritten all the time; run it again")

    def start(self) -> None:
        """Renew the lease every RENEW_S seconds from now on, in a daemon thread."""
        active_here.add(self._record.holder)
        self._renewer.start()

    def release(self) -> None:
        """Give the lease back if it is still held; a failure leaves it to expire."""
        self._over.set()
        if self._renewer.is_alive():
            self._renewer.join()
        with suppress(CiteRayError):
            self._write(holder="")
        active_here.discard(self._record.holder)

    def _keep(self) -> None:
        while not self._over.wait(RENEW_S):
            try:
                self.renew()
            except LeaseLostError:
                return
            except CiteRayError:
                # Tried again until it is overdue, which `check` tells.
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
                self._lost = self._sentence()
                raise LeaseLostError(self._lost) from error
            self._record, self._renewed = record, begun

    def _sentence(self) -> str:
        found = read_stamped(self.index / LEASE)
        now = record_of(found, self.index) if found else None
        taker = f"{now} now" if now and now.holder else "another command held it meanwhile"
        return (
            f"{self.index}: this {self._record.command} was paused or cut off for more than "
            f"{LEASE_S:.0f} s and lost its lease ({taker}); it published nothing since: run it "
            "again once the other has ended"
        )


@contextmanager
def hold_lease(index: Place, command: str) -> Iterator[Lease]:
    """Hold the lease of `index` for the block, which is `command` ("build").

    Raises LeaseHeldError where another command holds it, StorageError where the index
    location cannot be written or has no compare-and-swap. Errors within the block that come
    after the lease was lost are raised as LeaseLostError.
    """
    lease = _acquire(index, command)
    lease.start()
    try:
        lease.fence()
        yield lease
    except LeaseLostError:
        raise
    except Exception as error:
        # What a successor removed under this holder fails in many ways, all with one cause.
        with suppress(StorageError):
            try:
                lease.renew()
            except LeaseLostError as lost:
                raise lost from error
        raise
    finally:
        lease.release()


def _acquire(index: Place, command: str) -> Lease:
    place = index / LEASE
    for _ in range(_TRIES):
        found = read_stamped(place)
        before = record_of(found, index) if found else None
        if before and found and before.holder and not may_be_replaced(before, found.age_s, LEASE_S):
            raise LeaseHeldError(
                f"{index}: another {before}; wait for its end and run this again. Ended without "
                f"a word, it holds the index for {LEASE_S:.0f} s more at most"
            )
        record = new_record(index, before, command)
        try:
            stamped = swap(place, found, _text(record))
        except SwapConflictError:
            continue
        if isinstance(place, StoredPlace):
            require_conditional_writes(place, stamped)
        return Lease(index, record, stamped)
    raise LeaseHeldError(f"{index}: several commands ask for its lease at once; run this again")


def _text(record: Pointer | LeaseRecord) -> bytes:
    return seal(record.model_dump())
