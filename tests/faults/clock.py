"""A clock that a round controls: time passes on a slow disk, and the clock jumps ahead or back.

The modification times of existing files move accordingly.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

# Longer than any lease, any back-off and all time that passes in a round, so that a clock that was
# set back makes nothing due by coincidence.
JUMP_S = 10 * 86_400.0


class Clock:
    """The clocks of this process, and the file times of the files in `folder`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._passed = self._set_by = 0.0

    def let_pass(self, seconds: float) -> None:
        self._passed += seconds
        self._age_files(seconds)

    def set_by(self, seconds: float) -> None:
        """Set the clock ahead or back without letting time pass."""
        self._set_by += seconds
        self._age_files(seconds)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Replace the clocks within the block."""
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
