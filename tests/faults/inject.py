"""Faults at the moment of a chosen write: what a process, a disk or a clock may do to a command.

Every call that changes a name, writes to a file or makes it durable (rename, replace, remove, make
a folder, write, fsync) is a moment. A fault happens at one of them, in this process, without Ray.
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
from tests.faults.clock import JUMP_S, Clock
from tests.faults.written_files import watching_writes

CALLS = ("replace", "rename", "unlink", "rmdir", "mkdir", "fsync")
ERRORS = {
    "disk full": errno.ENOSPC,
    "quota": errno.EDQUOT,
    "read-only": errno.EROFS,
    "failing disk": errno.EIO,
}
# After these the process is gone. A lying disk says that it has kept what it has not; the clock
# is set back while nobody is there to renew the lease.
DEADLY = ("kill", "power cut", "lying disk", "clock back")
# An allocation fails, and the process cleans up after itself. Whom the kernel chooses is killed.
OUT_OF_MEMORY = "out of memory"
FAULTS = (*ERRORS, *DEADLY, OUT_OF_MEMORY, "stop", "clock ahead", "slow disk", "readers look")
# Each moment on a slow disk takes so long.
SLOW_S = 45.0


class Killed(BaseException):
    """The process is gone: nothing that it would do next is done, nor is anything cleaned up."""


class Injector:
    """Lets `fault` happen at the moment number `at` of what runs under `watching`.

    `overtake` is what others do at this moment, or while this process is stopped, or once its lease
    has run out as time went by or as the clock was set ahead; it tells whether that was done.
    `fired` tells whether the moment came.
    """

    def __init__(
        self,
        root: Path,
        fault: str,
        at: int,
        overtake: Callable[[], bool] = lambda: False,
        clock: Clock | None = None,
    ) -> None:
        self.fired = False
        self.moments = 0
        self._root, self._fault, self._at, self._overtake = root, fault, at, overtake
        self._clock = clock or Clock()
        self._dead = self._broken = self._aside = self._overtaken = False
        self._before = {p: _state(p) for p in root.rglob("*") if p.is_file()}
        self._synced: set[tuple[int, int, int]] = set()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count the moments within the block, and let the fault happen at its own."""
        with ExitStack() as stack:
            for name in CALLS:
                stack.enter_context(patch.object(os, name, self._watched(name, getattr(os, name))))
            stack.enter_context(watching_writes(self._write))
            yield

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not self._aside:
                self._moment(name, args)
            if name == "fsync" and self._fault != "lying disk":
                found = os.fstat(args[0])
                self._synced.add((found.st_ino, found.st_size, found.st_mtime_ns))
            return call(*args, **kwargs)

        return watched

    def _write(self, data: Any, write: Callable[[Any], int | None]) -> int | None:
        was_whole = not (self._dead or self._broken)
        if not self._aside:
            try:
                self._moment("write", ())
            except BaseException:
                # It was at it when it happened; what has no memory has not begun.
                if was_whole and self._fault != OUT_OF_MEMORY:
                    write(bytes(data)[: len(data) // 2])
                raise
        return write(data)

    def _moment(self, name: str, args: tuple[Any, ...]) -> None:
        if self._dead:
            raise Killed
        if self._broken:
            # A full disk lets files be removed, a read-only or failing one nothing.
            if self._fault in ("disk full", "quota") and name in ("unlink", "rmdir"):
                return
            raise OSError(ERRORS[self._fault], os.strerror(ERRORS[self._fault]), *args[:1])
        self.moments += 1
        if self.moments < self._at:
            return
        if self._fault == "slow disk":
            self.fired = True
            self._clock.let_pass(SLOW_S)
        if self._fault == "readers look":
            if not self._overtaken:
                self._step_aside()
        elif self._fault in ("stop", "clock ahead", "slow disk"):
            # Whoever is stopped within the lock of the lease keeps the other waiting for it.
            free = name in ("replace", "rename") and Path(str(args[-1])).name not in (
                CURRENT, LEASE,
            )  # fmt: skip
            if free and not self._overtaken:
                self._step_aside()
        elif not self.fired:
            self.fired = True
            self._strike(name, args)

    def _step_aside(self) -> None:
        self.fired = self._aside = True
        if self._fault == "clock ahead":
            self._clock.set_by(JUMP_S)
        try:
            self._overtaken = self._overtake() or self._fault != "slow disk"
        finally:
            self._aside = False

    def _strike(self, name: str, args: tuple[Any, ...]) -> None:
        if self._fault in ERRORS:
            self._broken = True
            self._moment(name, args)
        if self._fault == OUT_OF_MEMORY:
            raise MemoryError(name)
        self._dead = True
        raise Killed

    def after(self, dice: random.Random) -> None:
        """After a loss of power, what was not made durable is cut somewhere.

        A disk that lies has kept one thing and not the other.
        """
        if self._fault not in ("power cut", "lying disk") or not self.fired:
            return
        for path in sorted(self._root.rglob("*")):
            known = self._synced | {self._before.get(path, (0, 0, 0))}
            kept = self._fault == "lying disk" and dice.random() < 0.5
            if path.is_file() and _state(path) not in known and not kept:
                data = path.read_bytes()
                path.write_bytes(data[: dice.randrange(len(data) + 1)])


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return (found.st_ino, found.st_size, found.st_mtime_ns)
