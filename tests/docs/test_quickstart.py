"""The quick start's commands that need neither Ray nor a model, run as they stand there.

The others are run by tests/end_to_end.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.settings.settings import load_settings
from tests.documentation import ROOT, TEXTS
from tests.small_index import citation, make_index

pytestmark = pytest.mark.process

PAGE = TEXTS["docs/quickstart.md"]


def run(line: str, folder: Path) -> str:
    """What the quick start's `line` prints, run in `folder`."""
    assert line in PAGE
    words = shlex.split(line.removeprefix(".venv/bin/").removeprefix("citeray "))
    done = subprocess.run(
        [sys.executable, "-m", "commands.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_sample_is_where_the_next_command_looks_for_it(tmp_path: Path) -> None:
    run(".venv/bin/citeray sample build/sample", tmp_path)
    assert ".venv/bin/citeray index build build/sample\n" in PAGE
    assert len(list((tmp_path / "build/sample").glob("*.xml.gz"))) == 3
    assert "`build/sample/questions.json`" in PAGE
    assert (tmp_path / "build/sample/questions.json").is_file()


def test_an_index_is_where_the_default_settings_look_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = load_settings().index.place
    assert place == tmp_path / ".citeray/index"
    assert isinstance(place, Path)
    place.mkdir(parents=True)
    make_index(place, [citation(1, "Metformin activates AMPK.")])
    assert "v000001" in run(".venv/bin/citeray index info", tmp_path)


def test_a_plan_for_all_of_pubmed_tells_disk_and_memory(tmp_path: Path) -> None:
    told = run("citeray plan --citations 38M", tmp_path).casefold()
    assert "memory" in told
    assert "index store" in told
