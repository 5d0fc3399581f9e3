"""Every regular expression takes time in proportion to its text, measured as CPU time."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from tests.hostile.pattern_time import ROOT

pytestmark = pytest.mark.nightly

CPU_LIMIT_S = 300


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        preexec_fn=_limit,
        capture_output=True,
        text=True,
        timeout=1800,
    )


def test_every_pattern_of_the_tree_takes_time_by_the_length_of_its_text() -> None:
    done = python("-m", "tests.hostile.pattern_time")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["slow"] == {}
    assert found["timed"] > 150


def test_quadratic_pattern_is_detected() -> None:
    program = """
import signal, tests.hostile.pattern_time as t
signal.signal(signal.SIGPROF, t._stop)
print(t.slow_text(t.Used(r"[^\\W\\d_][\\w.]*$", 0, False)))
"""
    done = python("-c", program)
    assert " s for " in done.stdout, done.stderr
