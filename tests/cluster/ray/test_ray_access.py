import os
import signal
import subprocess
import sys

import pytest

from cluster.ray.ray_access import TERMINATED

pytestmark = pytest.mark.process

# A command that is still busy when SIGTERM arrives, once more while it stops.
COMMAND = """
import os, signal, sys
from commands import cli
def run(**_):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        print("stopped")
cli.app = run
cli.main()
"""


def test_sigterm_ends_a_command_with_one_line() -> None:
    assert TERMINATED == 128 + signal.SIGTERM
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND], capture_output=True, text=True, env=os.environ, check=False
    )
    assert (ended.returncode, ended.stdout) == (TERMINATED, "stopped\n")
    assert ended.stderr == "citeray: stopped by SIGTERM\n"
