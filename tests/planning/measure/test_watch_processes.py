"""Processes are distinguished by the command lines that Ray sets."""

from __future__ import annotations

import subprocess
import sys

import pytest

from planning.measure.watch_processes import RAYS_OWN, watched_tree

pytestmark = pytest.mark.process

MB = 10**6
# Program that holds the given number of bytes until standard input closes.
HOLDER = "import sys; held = bytearray(int(sys.argv[1])); print(flush=True); sys.stdin.read()"
PARENT = f"""
import subprocess, sys
members = [
    subprocess.Popen(
        [sys.executable, "-c", {HOLDER!r}, str(size), name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    for size, name in [
        (120_000_000, "ray::_shard_task"), (60_000_000, "ray::_shard_task"),
        (50_000_000, "gcs_server"), (50_000_000, "ray::_StatsActor.register_dataset"),
    ]
]
for member in members:
    member.stdout.readline()
print(flush=True)
sys.stdin.read()
for member in members:
    member.communicate()
"""


def test_peak_memory_is_measured_per_role() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        with watched_tree(parent.pid) as tree:
            pass
        parent.communicate()
    assert tree.peaks.keys() == {"driver", "shard task", RAYS_OWN}
    assert 120 * MB <= tree.peaks["shard task"] < 180 * MB
    assert 100 * MB <= tree.peaks[RAYS_OWN] < 160 * MB
    assert tree.peaks["driver"] < 60 * MB
    assert tree.core_seconds > 0


def test_ended_process_is_skipped() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended, watched_tree(ended.pid) as tree:
        ended.wait()
    assert set(tree.peaks) <= {"driver", RAYS_OWN}
