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
    """An environment in `folder` without pip; with `bare` it has no packages at all."""

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self.bin = folder / "bin"
        venv.create(folder, with_pip=False)
        if not bare:
            here = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
            # Such a folder is not searched for .pth files, so an editable CiteRay is absent.
            (here / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def pip(self, *arguments: str, cwd: Path) -> None:
        """Run this environment's pip on the fresh environment."""
        command = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def run(self, command: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=cwd,
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
