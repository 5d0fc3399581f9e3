"""The demo's temporary folder is removed however the demo ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands.demo import scratch_folder

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
DEMO = """
import sys, time
from commands.demo import scratch_folder
with scratch_folder() as folder:
    (folder / "index").mkdir()
    print(folder, flush=True)
    time.sleep(60)
"""


def test_folder_is_removed_after_the_block() -> None:
    with scratch_folder() as folder:
        (folder / "file").write_text("a")
    assert not folder.exists()


def test_folder_is_removed_after_the_process_is_killed() -> None:
    command = [sys.executable, "-c", DEMO]
    # At the same time, because each takes seconds to start.
    demos = {
        ending: subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for ending in (signal.SIGTERM, signal.SIGKILL)
    }
    for ending, demo in demos.items():
        assert demo.stdout is not None
        folder = Path(demo.stdout.readline().strip())
        assert folder.is_dir()
        demo.send_signal(ending)
        demo.communicate()
        ends = time.monotonic() + 30
        while folder.exists() and time.monotonic() < ends:
            time.sleep(0.1)
        assert not folder.exists(), ending
