from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands.index_jobs.index import index as group
from tests.pipelines.verify.built_index import SEGMENT

pytestmark = pytest.mark.model


def run_verify(index: Path, *arguments: object) -> Result:
    command = ["verify", f"--set=index.path={index}", "--jobs=1", *map(str, arguments)]
    return CliRunner().invoke(group, command, catch_exceptions=False)


def test_verify_prints_findings_as_lines_or_json(index: Path) -> None:
    shutil.rmtree(index / SEGMENT)
    (index / "staging").mkdir()
    result = run_verify(index)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"missing-segment: {SEGMENT}: missing, with its ")
    assert lines[0].endswith("or build the index again with `citeray index build --again`")
    assert "3 findings" in result.stderr
    # A retried job would find the build published, and fail again.
    assert "the same `citeray index build` would keep this index" in result.stderr
    assert "add --again" in result.stderr
    result = run_verify(index, "--json", "--quick")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["clean"], report["version"]) == (1, False, "v000001")
    assert report["findings"][0]["kind"] == "missing-segment"
    assert [leftover["place"] for leftover in report["leftovers"]] == ["staging"]


def test_verify_exits_0_for_an_intact_index_with_leftovers(index: Path) -> None:
    result = run_verify(index)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "40 citations, 80 passages live: 0 findings, 0 leftovers" in result.stderr
    (index / "staging").mkdir()
    result = run_verify(index)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("leftover: staging: ")
