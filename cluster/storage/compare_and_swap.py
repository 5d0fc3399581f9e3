"""Compare-and-swap of one small file: it is replaced only if it has not changed since the read.

In a folder, an exclusive OS lock on `LEASE.lock` guards the comparison and the rename that
follows; in an object store, the write is conditional on the ETag (s3://) or the generation
(gs://) that was read. Every write must have different bytes, so that a write whose response
was lost can be distinguished from the write of another process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.errors import CiteRayError, StorageError
from cluster.storage.conditional_store import PreconditionError, Stamped, conditional_object
from cluster.storage.disk_faults import explain_disk_faults
from cluster.storage.locations import Location, StoredLocation
from cluster.storage.whole_files import write_atomically

LOCK = "LEASE.lock"
_LOCK_WAIT_S = 10.0
_POLL_S = 0.02
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class SwapConflictError(CiteRayError):
    """Another process has written the file since it was read."""


def read_stamped(location: Location) -> Stamped | None:
    """Return the file with its stamp, or None if it does not exist.

    In a folder, the age is measured by the file system's own clock, using a file there.
    Raises InputError or StorageError if the index location fails.
    """
    if isinstance(location, StoredLocation):
        return conditional_object(location).read()
    try:
        with location.open("rb") as stream:
            data, written = stream.read(), os.fstat(stream.fileno()).st_mtime
    except FileNotFoundError:
        return None
    now = location.with_name(LOCK)
    with explain_disk_faults(location):
        now.touch()
        age_s = now.stat().st_mtime - written
    return Stamped(data, "", age_s)


def swap(location: Location, expected: Stamped | None, data: bytes) -> Stamped:
    """Replace the file that was read as `expected` by `data`; None creates the file.

    Raises SwapConflictError if the file has changed since, and StorageError if it cannot be
    written.
    """
    if isinstance(location, StoredLocation):
        return _swap_stored(location, expected, data)
    with explain_disk_faults(location):
        location.parent.mkdir(parents=True, exist_ok=True)
        with _locked(location.with_name(LOCK)):
            found = location.read_bytes() if location.exists() else None
            if found != (expected.data if expected else None):
                raise SwapConflictError(f"{location}: another process has changed it since")
            write_atomically(location, data, alone=True)
    return Stamped(data, "")


def _swap_stored(location: StoredLocation, expected: Stamped | None, data: bytes) -> Stamped:
    stored = conditional_object(location)
    try:
        return Stamped(data, stored.write(data, expected.stamp if expected else None))
    except PreconditionError as error:
        # The retry of a write that succeeded, but whose response was lost, is refused.
        found = stored.read()
        if found and found.data == data:
            return found
        raise SwapConflictError(f"{location}: another process has changed it since") from error


def require_conditional_writes(location: StoredLocation, stamped: Stamped) -> None:
    """Raise StorageError if the store ignores conditions; `location` must hold `stamped`."""
    stored = conditional_object(location)
    for wrong in (None, "0123456789abcdef" if location.url.startswith("s3") else "1"):
        try:
            stored.write(stamped.data, wrong)
        except PreconditionError:
            continue
        raise StorageError(
            f"{location}: this store ignores conditional writes, so two writers could overwrite "
            "each other's version; use a store that supports If-Match and If-None-Match"
        )


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    # Open the file for writing, since NFS otherwise grants no exclusive lock. Never remove it:
    # a lock on a removed file would exclude nobody.
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(descriptor, lock)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, lock: Path) -> None:
    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise CiteRayError(
                    f"{lock}: another process has held this lock for {_LOCK_WAIT_S:.0f} s; it is "
                    "paused or its disk hangs. Resume or end it, and run the command again"
                ) from error
            time.sleep(_POLL_S)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            raise StorageError(
                f"{lock.parent}: this file system has no locks, so two writers could overwrite "
                "each other's version; put the index on one with locks, or in an object store"
            ) from error
