"""An index, and `citeray index` with its settings."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.commands.run_here import run_here
from tests.end_to_end.command import BIN, run, with_settings


@dataclass(frozen=True)
class Indexed:
    """An index at `path`; commands run with `settings` and `variables`."""

    path: Path
    settings: list[str]
    variables: Mapping[str, str]

    def command(self, *words: str, over: Sequence[str] = ()) -> subprocess.CompletedProcess:
        """Run a command with the settings, overridden by `over`."""
        command = [str(BIN / "citeray"), "index", *words]
        return run(with_settings(command, [*self.settings, *over]), self.variables)

    def here(self, *words: str) -> tuple[int, str, str]:
        """Run a command that needs no Ray in this process; return its exit code and output."""
        return run_here("index", *with_settings(list(words), self.settings))

    def json(self, *words: str, over: Sequence[str] = ()) -> dict[str, Any]:
        """Return the result of a command, which must succeed."""
        done = self.command(*words, "--json", over=over)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found
