"""Faults at the moment of a chosen write: what a process, a disk or a kernel may do to a command.

Every call that changes a name or makes a file durable (rename, replace, remove, make a folder,
fsync) is a moment. A fault happens at one of them, in this process, without Ray.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cluster.index.layout import CURRENT, LEASE

CALLS = ("replace", "rename", "unlink", "rmdir", "mkdir", "fsync")
ERRORS = {
    "disk full": errno.ENOSPC,
    "quota": errno.EDQUOT,
    "read-only": errno.EROFS,
    "failing disk": errno.EIO,
}
FAULTS = (*ERRORS, "kill", "power cut", "stop")


class Killed(BaseException):
    """The process is gone: nothing that it would do next is done, nor is anything cleaned up."""


class Injector:
    """Lets `fault` happen at the moment number `at` of what runs under `watching`.

    `overtake` is what another process does while this one is stopped. `fired` tells whether the
    moment came.
    """

    def __init__(
        self, root: Path, fault: str, at: int, overtake: Callable[[], None] = lambda: None
    ) -> None:
        self.fired = False
        self.moments = 0
        self._root, self._fault, self._at, self._overtake = root, fault, at, overtake
        self._dead = self._broken = self._aside = False
        self._before = {p: _state(p) for p in root.rglob("*") if p.is_file()}
        self._synced: set[tuple[int, int, int]] = set()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count the moments within the block, and let the fault happen at its own."""
        with ExitStack() as stack:
            for name in CALLS:
                stack.enter_context(patch.object(os, name, self._watched(name, getattr(os, name))))
            yield

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not self._aside:
                self._moment(name, args)
            if name == "fsync":
                found = os.fstat(args[0])
                self._synced.add((found.st_ino, found.st_size, found.st_mtime_ns))
            return call(*args, **kwargs)

        return watched

    def _moment(self, name: str, args: tuple[Any, ...]) -> None:
        if self._dead:
            raise Killed
        if self._broken:
            # A full disk lets files be removed, a read-only or failing one nothing.
            if self._fault in ("disk full", "quota") and name in ("unlink", "rmdir"):
                return
            raise OSError(ERRORS[self._fault], os.strerror(ERRORS[self._fault]), *args[:1])
        self.moments += 1
        if self.moments < self._at or self.fired:
            return
        # Whoever is stopped within the lock of the lease keeps the other waiting for it.
        locked = name not in ("replace", "rename") or Path(str(args[-1])).name in (CURRENT, LEASE)
        if self._fault == "stop" and locked:
            return
        self.fired = True
        if self._fault == "stop":
            self._aside = True
            self._overtake()
            self._aside = False
        elif self._fault in ERRORS:
            self._broken = True
            self._moment(name, args)
        else:
            self._dead = True
            raise Killed

    def after(self, dice: random.Random) -> None:
        """After a power cut: what was not made durable is cut somewhere."""
        if self._fault != "power cut" or not self.fired:
            return
        for path in sorted(self._root.rglob("*")):
            known = self._synced | {self._before.get(path, (0, 0, 0))}
            if path.is_file() and _state(path) not in known:
                data = path.read_bytes()
                path.write_bytes(data[: dice.randrange(len(data) + 1)])


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return (found.st_ino, found.st_size, found.st_mtime_ns)
