"""Ends the processes that a killed process leaves behind.

    python end_orphans.py PID

A language model's engine is a process of its own, which does not notice when the replica that
started it is killed (SIGKILL) and would keep its memory, or its GPU. This watches the replica
from a session of its own and ends with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

import psutil

LOOK_S = 1.0


def watch_from_aside() -> None:
    """Have the descendants of this process killed, should it end without them."""
    subprocess.Popen(
        [sys.executable, __file__, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def end_orphans(pid: int, look_s: float = LOOK_S) -> None:
    """Return once the process `pid` has ended and its descendants have been killed.

    A descendant is one that `look_s` seconds sufficed to see. Processes are known by their start
    as well as their number, which another one may get.
    """
    seen: set[psutil.Process] = set()
    with suppress(psutil.NoSuchProcess):
        watched = psutil.Process(pid)
        while watched.is_running() and watched.status() != psutil.STATUS_ZOMBIE:
            seen.update(watched.children(recursive=True))
            time.sleep(look_s)
    for process in seen - {psutil.Process()}:
        with suppress(psutil.NoSuchProcess):
            # Refuses a process that only has the number of the one that was seen.
            process.kill()


if __name__ == "__main__":
    end_orphans(int(sys.argv[1]))
