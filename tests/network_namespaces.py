"""Network namespaces for threads of a test and the processes that they start."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
OWN = "/proc/thread-self/ns/net"


class Namespace:
    """Unnamed network namespace, which disappears when it is closed and no process uses it.

    A thread uses it within an `entered` block. Keep blocks short: threads that a library such as
    Arrow starts meanwhile stay in the namespace.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        with Path(OWN).open() as before:
            self._try("unshare", CLONE_NEWNET)
            try:
                self._own = os.open(OWN, os.O_RDONLY)
                run("ip", "link", "set", "lo", "up")
            finally:
                self._try("setns", before.fileno(), CLONE_NEWNET)

    @property
    def path(self) -> str:
        """Path by which `ip` can use the namespace while it is open."""
        return f"/proc/{os.getpid()}/fd/{self._own}"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put this thread, and processes it starts in the block, into the namespace."""
        with Path(OWN).open() as before:
            self._try("setns", self._own, CLONE_NEWNET)
            try:
                yield
            finally:
                self._try("setns", before.fileno(), CLONE_NEWNET)

    def run(self, *command: str, given: str | None = None) -> str:
        """Return the output of a command run in the namespace, with `given` as standard input."""
        with self.entered():
            return run(*command, given=given)

    def close(self) -> None:
        os.close(self._own)

    def _try(self, call: str, *arguments: int) -> None:
        if getattr(self._libc, call)(*arguments):
            raise OSError(ctypes.get_errno(), call)


def run(*command: str, given: str | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, input=given)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
