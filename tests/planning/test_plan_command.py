"""`citeray plan` with coefficients from a file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.settings.settings import load_settings
from commands.cli import app
from planning.measure.coefficients import write_coefficients
from tests.planning.some_coefficients import GPU, coefficients

pytestmark = pytest.mark.model


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
    for words in ("Nodes", "index store:", "M/M/c", "docs/benchmarks.md", "of 2026-11-26"):
        assert words in shown


def test_plan_with_unknown_figures_exits_1_and_says_what_is_missing(
    calibration: Path, tmp_path: Path
) -> None:
    asked = ("--config", "cluster.yaml", "--calibration", calibration)
    values = tmp_path / "values.yaml"
    done = plan(*asked, "--emit-values", values, "--json")
    planned = json.loads(done.stdout)
    assert (done.exit_code, planned["feasible"]) == (1, None)
    assert planned["unknown"] == ["expander", "encoder", "reranker", "memory of a GPU"]
    assert planned["build"]["value"] is planned["gpu_hours"]["value"] is None
    assert (
        "not known to be feasible, because these are unknown: expander, encoder, re" in done.stderr
    )
    assert values.is_file()
    explained = plan(*asked, "--explain").stdout
    assert "unknown: run `citeray plan --calibrate` on a GPU" in explained
    assert "nan" not in explained.split()
    known = plan("--calibration", calibration, "--json")
    assert (known.exit_code, json.loads(known.stdout)["feasible"]) == (0, True)
    assert known.stderr == ""


def test_gpu_file_makes_the_figures_known(calibration: Path, tmp_path: Path) -> None:
    asked = ("--config", "cluster.yaml", "--calibration", calibration)
    gpu = tmp_path / "gpu.json"
    gpu.write_text(GPU.model_dump_json())
    done = plan(*asked, "--gpu", gpu, "--gpu-memory", "24GB", "--p95", "60s", "--json")
    planned = json.loads(done.stdout)
    assert (done.exit_code, planned["unknown"], planned["feasible"]) == (0, [], True), done.stderr
    # The recogniser reads a question in less time than the encoder a document.
    [expander] = [stage for stage in planned["serving"]["stages"] if stage["name"] == "expander"]
    assert expander["service"]["value"] >= 1 / 50
    # 2 passages of 100 tokens; a GPU encodes 1,000 documents of 50 tokens per second, without token
    # vectors.
    assert planned["gpu_hours"]["value"] == pytest.approx(76e6 * (1 / 500 + 1 / 1e5) / 3600)


def test_stage_names_are_complete_on_a_narrow_terminal(
    calibration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("--config", "cluster.yaml", "--calibration", calibration)
    for width in ("40", "60"):
        monkeypatch.setenv("COLUMNS", width)
        shown = plan(*asked).stdout
        for stage in ("gateway", "expander", "encoder", "shard", "reranker"):
            assert f"│ {stage} " in shown
        assert "…" not in shown


def test_invalid_gpu_file_is_refused(calibration: Path, tmp_path: Path) -> None:
    gpu = tmp_path / "gpu.json"
    for changes, said in [
        (None, "gpu.json: cannot be read"),
        ({"kind": "other"}, "kind: must be 'gpu-coefficients'"),
        ({"cross_encoder_pairs_per_s": 0}, "must be more than 0"),
    ]:
        if changes:
            gpu.write_text(json.dumps(GPU.model_dump() | changes))
        done = plan("--calibration", calibration, "--gpu", gpu)
        assert isinstance(done.exception, InputError)
        assert re.search(f"{said}.*benchmarks.gpu_check", str(done.exception))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--p95", "10ms"), "p95 of 0.01 s cannot be met"),
        (
            ("--config", "cluster.yaml", "--set", "serve.http.at_once=8"),
            "the language model answers 64 requests at a time",
        ),
    ],
)
def test_infeasible_plan_exits_1(calibration: Path, options: tuple[str, ...], said: str) -> None:
    done = plan(*options, "--calibration", calibration)
    assert done.exit_code == 1
    assert f"not feasible: {said}" in done.stderr


def test_bad_option_is_refused(calibration: Path, subtests: pytest.Subtests) -> None:
    for option, value, said in [
        ("--citations", "lots", "--citations lots: expected a number such as 38M"),
        ("--p95", "2", "--p95 2: expected a time"),
        ("--node-memory", "big", "--node-memory big: expected a size"),
        ("--gpu-memory", "24", "--gpu-memory 24: expected a size"),
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
    assert "measured on another machine" in assumptions[1]
    own = tmp_path / ".citeray" / "calibration.json"
    own.parent.mkdir()
    calibration.rename(own)
    assumptions = json.loads(plan("--json").stdout)["assumptions"]
    assert assumptions[0].startswith("coefficients of this calibration")
