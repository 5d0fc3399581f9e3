"""Peak memory of a command's processes, by what they do."""

from __future__ import annotations

import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import psutil

_ANONYMOUS = re.compile(r"^Anonymous:\s+(\d+) kB", re.MULTILINE)
_IDLE = "ray::IDLE"


def anonymous_mb(pid: int) -> float:
    """What a process holds for itself: neither mapped files nor Ray's shared object store."""
    found = _ANONYMOUS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _role(process: psutil.Process, root: int) -> str:
    if process.pid == root:
        return "driver"
    name = " ".join(process.cmdline()[:1])
    if name.startswith("ray::"):
        return name.split("(")[0].strip()
    return Path(name).name


def run_watched(command: Sequence[str], every_s: float = 0.5) -> tuple[str, dict[str, float]]:
    """Run `command` to its end: its output, and the peak MB of the largest process of each role.

    Raises CalledProcessError where the command fails.
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    root = psutil.Process(process.pid)
    peaks: defaultdict[str, float] = defaultdict(float)
    while process.poll() is None:
        try:
            for member in [root, *root.children(recursive=True)]:
                role = _role(member, root.pid)
                if role != _IDLE:
                    peaks[role] = max(peaks[role], anonymous_mb(member.pid))
        except (psutil.Error, OSError):
            pass  # One ended while it was looked at.
        time.sleep(every_s)
    output = process.communicate()[0]
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    return output, {role: round(peak) for role, peak in sorted(peaks.items()) if peak > 20}
