"""Kills the child processes that a killed process leaves behind.

    python orphan_processes.py PID

A language model's engine runs in a separate process, which does not notice when the replica that
started it is killed (SIGKILL) and would keep its memory or its GPU. This program runs in
its own session, watches the replica, and kills these processes when the replica ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

import psutil

LOOK_S = 1.0


def start_orphan_watcher() -> None:
    """Start a process that kills the descendants of this process if they outlive it."""
    subprocess.Popen(
        [sys.executable, __file__, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def end_orphans(pid: int) -> None:
    """Return once the process `pid` has ended and its descendants have been killed.

    Descendants are polled every LOOK_S seconds, so shorter-lived ones may be missed. Processes
    are identified by start time as well as PID, because a PID may be reused.
    """
    seen: set[psutil.Process] = set()
    with suppress(psutil.NoSuchProcess):
        watched = psutil.Process(pid)
        while watched.is_running() and watched.status() != psutil.STATUS_ZOMBIE:
            seen.update(watched.children(recursive=True))
            time.sleep(LOOK_S)
    for process in seen - {psutil.Process()}:
        with suppress(psutil.NoSuchProcess):
            # psutil refuses to kill another process with a reused PID.
            process.kill()


if __name__ == "__main__":
    end_orphans(int(sys.argv[1]))
