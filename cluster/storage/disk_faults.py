"""Reports the path and the fix if a disk is full or not writable."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.errors import CiteRayError, StorageError

_FULL = "free some space and run the same command again: what is whole is kept"
_CLOSED = "make it writable, or name another place"
_FAULTS = {
    errno.ENOSPC: ("the disk is full", _FULL),
    errno.EDQUOT: ("the disk quota is used up", _FULL),
    errno.EROFS: ("the file system is read-only", _CLOSED),
    errno.EACCES: ("this user may not write there", _CLOSED),
}


def _fault_of(error: Exception) -> tuple[str, str] | None:
    if isinstance(error, OSError) and error.errno:
        return _FAULTS.get(error.errno)
    # FAISS and tantivy raise their own exceptions, which quote the system's message.
    return next((f for code, f in _FAULTS.items() if os.strerror(code) in str(error)), None)


@contextmanager
def explain_disk_faults(path: Path) -> Iterator[None]:
    """Raise StorageError if a write to `path` fails because the disk is full or not writable.

    The message names `path`, unless the system names a file elsewhere. Other errors are raised
    unchanged.
    """
    try:
        yield
    except CiteRayError:
        raise
    except Exception as error:
        fault = _fault_of(error)
        if fault is None:
            raise
        named = getattr(error, "filename", None)
        aside = not isinstance(named, str) or Path(named).is_relative_to(path.parent)
        at = path if aside else named
        raise StorageError(f"{at}: {fault[0]}; {fault[1]}") from error
