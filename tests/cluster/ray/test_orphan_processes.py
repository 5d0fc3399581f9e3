"""Child processes of a killed replica are ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
# A replica starts an engine, which starts a worker, each in its own session.
REPLICA = """
import subprocess, sys, time
from cluster.ray.orphan_processes import start_orphan_watcher
ENGINE = "import subprocess; worker = subprocess.Popen(['sleep', '300'], start_new_session=True); "
ENGINE += "print(worker.pid, flush=True); worker.wait()"
start_orphan_watcher()
engine = subprocess.Popen([sys.executable, "-c", ENGINE], start_new_session=True)
print(engine.pid, flush=True)
time.sleep(300)
"""


def test_child_processes_end_with_a_killed_replica() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", REPLICA], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    left = [psutil.Process(int(process.stdout.readline())) for _ in range(2)]
    watcher = next(p for p in psutil.Process(process.pid).children() if p not in left)
    try:
        # Give the watcher time to see both processes.
        time.sleep(2.5)
        assert all(p.is_running() for p in left)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        _, alive = psutil.wait_procs([*left, watcher], timeout=60)
        assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    finally:
        process.kill()
        for p in left:
            if p.is_running():
                p.kill()
