"""`citeray plan` with coefficients from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.settings.settings import load_settings
from commands.cli import app
from planning.error_bar import ErrorBar
from planning.measure.coefficients import write_coefficients
from planning.units import format_seconds
from tests.planning.some_coefficients import coefficients

pytestmark = pytest.mark.ray


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    path = tmp_path / "calibration.json"
    write_coefficients(coefficients(), path)
    return path


def plan(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def test_plan_prints_json_or_tables_and_writes_files(calibration: Path, tmp_path: Path) -> None:
    config, values = tmp_path / "planned.yaml", tmp_path / "values.yaml"
    asked = ("--citations", "38M", "--qps", 50, "--calibration", calibration)
    done = plan(*asked, "--emit-config", config, "--emit-values", values, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["size"]["citations"], found["feasible"]) == (38_000_000, True)
    assert {"value", "unit", "formula", "inputs"} <= set(found["build"])
    shards = found["size"]["shards"]
    assert load_settings(config).index.shards == shards
    written = yaml.safe_load(values.read_text())
    assert written["settings"]["index"]["shards"] == shards
    assert written["load"]["questionsPerSecond"] == 50
    shown = plan(*asked, "--explain", "--node-hour", 1, "--prices-of", "2026-11-26").stdout
    for words in ("Nodes", "index store:", "M/M/c", "no error bars: --check", "of 2026-11-26"):
        assert words in shown


def test_figures_have_the_error_bars_of_a_check(calibration: Path) -> None:
    errors = [("time: all", -0.2), ("time: index", 0.25), ("bytes of BM25", -0.5)]
    errors += [("memory of driver", 0.0), ("search of a shard", 0.1), ("passages", 9.0)]
    found = coefficients().model_copy(update={"checked": ErrorBar.of(5000, errors)})
    write_coefficients(found, calibration)
    done = plan("--citations", "38M", "--qps", 50, "--calibration", calibration, "--json")
    told = json.loads(done.stdout)
    assert told["error_bar"]["time"] == {"low": -0.2, "high": 0.25}
    shown = plan("--citations", "38M", "--qps", 50, "--calibration", calibration)
    build = told["build"]["value"]
    low, high = format_seconds(build / 1.25), format_seconds(build / 0.8)
    row = next(line for line in shown.stdout.splitlines() if line.startswith("│ build "))
    assert f"{low} to {high}" in row
    assert "a real build of 5,000 citations" in shown.stdout


def test_infeasible_plan_exits_1(calibration: Path) -> None:
    done = plan("--p95", "10ms", "--calibration", calibration)
    assert done.exit_code == 1
    assert "not feasible: p95 of 0.01 s cannot be met" in done.stderr


def test_bad_option_is_refused(calibration: Path, subtests: pytest.Subtests) -> None:
    for option, value, said in [
        ("--citations", "lots", "--citations lots: expected a number such as 38M"),
        ("--p95", "2", "--p95 2: expected a time"),
        ("--node-memory", "big", "--node-memory big: expected a size"),
        ("--path", "talk", "--path talk: unknown; there are: search, answer"),
        ("--prices-of", "today", "--prices-of today: expected a day such as 2026-11-26"),
        ("--path", "answer", "the language model was not measured"),
        ("--sample", "/no/such/file.xml", "/no/such/file.xml"),
    ]:
        with subtests.test(option=option, value=value):
            done = plan(option, value, "--calibration", calibration)
            assert isinstance(done.exception, InputError)
            assert said in str(done.exception)


def test_own_calibration_takes_precedence_over_the_shipped_one(
    calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assumptions = json.loads(plan("--json").stdout)["assumptions"]
    assert assumptions[0].startswith("coefficients shipped with CiteRay: measured ")
    assert "not of your machine" in assumptions[1]
    own = tmp_path / ".citeray" / "calibration.json"
    own.parent.mkdir()
    calibration.rename(own)
    assumptions = json.loads(plan("--json").stdout)["assumptions"]
    assert assumptions[0].startswith("coefficients of this calibration")
