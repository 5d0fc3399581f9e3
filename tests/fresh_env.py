"""A virtual environment that has the packages of this one, but not CiteRay."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path


class FreshEnv:
    """At `folder`, without pip; `bare` has no packages at all."""

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self.bin = folder / "bin"
        venv.create(folder, with_pip=False)
        if not bare:
            here = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
            # Of a folder that is added so, Python reads no .pth: an editable CiteRay stays out.
            (here / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def pip(self, *arguments: str, cwd: Path) -> None:
        """Runs pip of this environment on the fresh one."""
        command = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def run(self, command: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """A program of the environment."""
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=cwd,
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
