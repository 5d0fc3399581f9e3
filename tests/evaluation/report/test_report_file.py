"""The page is written completely or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.report.render_report import write_report
from evaluation.report.report import Group
from tests.evaluation.report.some_report import LIGHT, REPORT


def test_unwritable_report_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/index\.html: the report cannot be written: "):
        write_report(tmp_path / "file", LIGHT)
    (tmp_path / "taken" / "index.html").mkdir(parents=True)
    with pytest.raises(InputError, match="name another folder"):
        write_report(tmp_path / "taken", LIGHT)
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["index.html"]


def test_failed_rendering_leaves_no_file(tmp_path: Path) -> None:
    broken: Any = {"documents MAP": "0.5"}
    with pytest.raises(AttributeError):
        write_report(tmp_path / "new", replace(REPORT, groups=(Group("all", 1, broken),)))
    assert not (tmp_path / "new").exists()
