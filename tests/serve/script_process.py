"""Python processes that run a script of a test, to be killed or to compete."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start_script(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start `script` with the repository on its path; its output is read as text."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
