"""The page is written whole or not at all, and always the same."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.report.render_report import write_report
from evaluation.report.report import Group
from tests.evaluation.report.some_report import LIGHT, REPORT


@pytest.mark.process
def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    """In another process too, with another hash seed."""
    code = (
        "import sys; from pathlib import Path;"
        "from evaluation.report.render_report import write_report;"
        "from tests.evaluation.report.some_report import REPORT;"
        "write_report(Path(sys.argv[1]), REPORT)"
    )
    root = Path(__file__).resolve().parents[3]
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "b")],
        cwd=root,
        env={"PYTHONHASHSEED": "1", "MPLCONFIGDIR": str(tmp_path)},
        check=True,
        timeout=120,
    )
    first = write_report(tmp_path / "a", REPORT).read_bytes()
    assert (tmp_path / "b/index.html").read_bytes() == first


def test_nothing_is_left_behind_where_the_page_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/index\.html: the report cannot be written: "):
        write_report(tmp_path / "file", LIGHT)
    (tmp_path / "taken" / "index.html").mkdir(parents=True)
    with pytest.raises(InputError, match="name another folder"):
        write_report(tmp_path / "taken", LIGHT)
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["index.html"]


def test_nothing_is_left_behind_when_rendering_fails(tmp_path: Path) -> None:
    broken: Any = {"documents MAP": "0.5"}
    with pytest.raises(AttributeError):
        write_report(tmp_path / "new", replace(REPORT, groups=(Group("all", 1, broken),)))
    assert not (tmp_path / "new").exists()
