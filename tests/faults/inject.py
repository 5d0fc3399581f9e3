"""Faults of a process, a disk or a clock, injected at a chosen write of a command.

Every rename, replace, removal, mkdir, write and fsync is a moment. A fault happens at one of them,
in this process, without Ray.
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
# Faults that end the process. A lying disk acknowledges writes that it loses; the clock is set back
# while no process renews the lease.
DEADLY = ("kill", "power cut", "lying disk", "clock back")
# An allocation fails, and the process cleans up. An OOM kill is the fault "kill".
OUT_OF_MEMORY = "out of memory"
FAULTS = (*ERRORS, *DEADLY, OUT_OF_MEMORY, "stop", "clock ahead", "slow disk", "readers look")
# Seconds that each moment takes on a slow disk.
SLOW_S = 45.0


class Killed(BaseException):
    """The process was killed: it does nothing more, not even clean up."""


class Injector:
    """Inject `fault` at moment number `at` of the code that runs under `watching`.

    `overtake` runs another process at this moment, while this process is stopped or after its lease
    has expired. It returns whether it did anything. `fired` says whether the moment was reached.
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
        self._moments = 0
        self._root, self._fault, self._at, self._overtake = root, fault, at, overtake
        self._clock = clock or Clock()
        self._dead = self._broken = self._aside = self._overtaken = False
        self._before = {p: _state(p) for p in root.rglob("*") if p.is_file()}
        self._synced: set[tuple[int, int, int]] = set()

    @contextmanager
    def watching(self, fired: list[str], dice: random.Random | None = None) -> Iterator[None]:
        """Count the moments within the block and inject the fault.

        Then add the fault to `fired` if it happened and, given `dice`, lose what was not durable.
        """
        with ExitStack() as stack:
            for name in CALLS:
                stack.enter_context(patch.object(os, name, self._watched(name, getattr(os, name))))
            stack.enter_context(watching_writes(self._write))
            try:
                yield
            finally:
                stack.close()
                if self.fired:
                    fired.append(self._fault)
                if dice:
                    self.after(dice)

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
                # A fault during a write leaves half of the data, except out of memory.
                if was_whole and self._fault != OUT_OF_MEMORY:
                    write(bytes(data)[: len(data) // 2])
                raise
        return write(data)

    def _moment(self, name: str, args: tuple[Any, ...]) -> None:
        if self._dead:
            raise Killed
        if self._broken:
            # A full disk still allows removals; a read-only or failing one allows nothing.
            if self._fault in ("disk full", "quota") and name in ("unlink", "rmdir"):
                return
            raise OSError(ERRORS[self._fault], os.strerror(ERRORS[self._fault]), *args[:1])
        self._moments += 1
        if self._moments < self._at:
            return
        if self._fault == "slow disk":
            self.fired = True
            self._clock.let_pass(SLOW_S)
        if self._fault == "readers look":
            if not self._overtaken:
                self._step_aside()
        elif self._fault in ("stop", "clock ahead", "slow disk"):
            # A process that stops while it holds the lock of the lease would block the other.
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
        """Truncate the files that were not durable, as a power cut does.

        A lying disk loses some of the files and keeps others.
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
