"""Time that a round turns: it passes fast on a slow disk, and the clock is set ahead or back.

Files that were written before are older by as much, or younger, as the file system's own clock
tells their age.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

# Longer than any lease and any wait before something is tried again, and than all the time that
# passes in a round: what was due before a clock was set back does not come due by coincidence.
JUMP_S = 10 * 86_400.0


class Clock:
    """The clocks of this process, and the file system's for the files right in `folder`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._passed = self._set_by = 0.0

    def let_pass(self, seconds: float) -> None:
        """So much time passes."""
        self._passed += seconds
        self._age_files(seconds)

    def set_by(self, seconds: float) -> None:
        """Somebody sets the clock by so much; no time passes."""
        self._set_by += seconds
        self._age_files(seconds)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within the block this is the time."""
        now, monotonic = time.time, time.monotonic
        with (
            patch.object(time, "time", lambda: now() + self._passed + self._set_by),
            patch.object(time, "monotonic", lambda: monotonic() + self._passed),
        ):
            yield

    def _age_files(self, seconds: float) -> None:
        for path in self._folder.glob("*") if self._folder else ():
            with suppress(FileNotFoundError):
                found = path.stat()
                os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))
