"""Networks of their own for threads of a test, and the processes that these start."""

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
    """A network that no name keeps: it is gone once it is closed and no process is on it.

    A thread is on it while it has entered it. Never for longer: threads that a library starts
    meanwhile, as Arrow's, would stay on it.
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
        """By which `ip` finds it, as long as it is open."""
        return f"/proc/{os.getpid()}/fd/{self._own}"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread, and what it starts within the block, is on it."""
        with Path(OWN).open() as before:
            self._try("setns", self._own, CLONE_NEWNET)
            try:
                yield
            finally:
                self._try("setns", before.fileno(), CLONE_NEWNET)

    def run(self, *command: str, given: str | None = None) -> str:
        """What the command prints that is run on it, with `given` as its standard input."""
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
