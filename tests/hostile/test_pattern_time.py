"""No regular expression takes longer than its text is long, whatever the text.

The one place where the suite asserts time: the process's own CPU time, with a floor.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys

import pytest

from tests.hostile.pattern_time import ROOT, Used, slow_text

pytestmark = pytest.mark.nightly

CPU_LIMIT_S = 300


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))


def test_every_pattern_of_the_tree_takes_time_by_the_length_of_its_text() -> None:
    command = [sys.executable, "-m", "tests.hostile.pattern_time"]
    done = subprocess.run(
        command, cwd=ROOT, preexec_fn=_limit, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["slow"] == {}
    assert found["timed"] > 150


@pytest.mark.parametrize(
    "pattern",
    [
        r"\s*\[\d+\]",
        r"(?:\bq:.{3,300}?\ba:.{3,300}?){3}",
        r"(a+)+b",
        r"[^\W\d_][\w.]*$",
    ],
)
def test_a_pattern_that_reads_text_again_and_again_is_found(pattern: str) -> None:
    program = f"""
import signal, tests.hostile.pattern_time as t
signal.signal(signal.SIGPROF, t._stop)
print(t.slow_text(t.Used({pattern!r}, {re.IGNORECASE.value}, False)))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=ROOT, preexec_fn=_limit, capture_output=True, text=True, timeout=600
    )
    assert " s for " in done.stdout, done.stderr


def test_a_pattern_that_is_used_at_the_start_alone_may_skip_space() -> None:
    assert slow_text(Used(r"\s*\d", 0, at_start=True)) is None
