from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from commands.evaluation.lint import lint
from evaluation.lint.lint_run import note_questions
from tests.evaluation.evaluate_command.small_runs import runner_of
from tests.evaluation.lint.lint_runs import URL
from tests.small_index import citation, make_index

run_lint = runner_of(lint)


def write(path: Path, *documents: str, **fields: Any) -> Path:
    row = {"id": "q", "type": "summary", "documents": list(documents), **fields}
    path.write_text(json.dumps({"questions": [row]}), encoding="utf-8")
    return path


@pytest.fixture
def nowhere(tmp_path: Path) -> str:
    return f"--set=index.path={tmp_path / 'none'}"


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory: pytest.TempPathFactory) -> str:
    index = tmp_path_factory.mktemp("command") / "index"
    make_index(index, [citation(7, "Iron is stored.")], shards=1)
    return f"--set=index.path={index}"


def test_clean_run_exits_0(tmp_path: Path, nowhere: str) -> None:
    result = run_lint(write(tmp_path / "run", f"{URL}7"), nowhere)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "bioasq, checked without an index: 0 problems" in result.stderr


def test_problems_are_printed_as_lines_or_json(tmp_path: Path, nowhere: str) -> None:
    run = write(tmp_path / "run", "7", "[red]x")
    result = run_lint(run, nowhere)
    assert result.exit_code == 1
    form = f"{URL}PMID"
    assert result.stdout.splitlines() == [
        f"question 0 (id q), document 0: '7' is not of the form {form} (--fix writes {URL}7)",
        f"question 0 (id q), document 1: '[red]x' is not a PubMed article; the form is {form}",
    ]
    report = json.loads(run_lint(run, "--json", nowhere).stdout)
    assert (report["format"], report["done"]) == ("bioasq", [])
    assert report["problems"][0]["mend"] == f"writes {URL}7"


def test_fix_writes_a_repaired_run(tmp_path: Path, nowhere: str) -> None:
    run = write(tmp_path / "run", "7", "7")
    before = run.read_bytes()
    result = run_lint(run, "--fix", "--output", tmp_path / "out", nowhere)
    assert result.exit_code == 0
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["mended"] * 3
    assert result.stdout.splitlines()[-1].endswith("occurs twice: drops the second")
    assert run.read_bytes() == before
    assert json.loads((tmp_path / "out").read_text())["questions"][0]["documents"] == [f"{URL}7"]


def test_fix_keeps_unsafe_problems_and_exits_1(tmp_path: Path, nowhere: str) -> None:
    run = write(tmp_path / "run", "7", "x")
    result = run_lint(run, "--fix", "--output", run, nowhere)
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 2
    assert json.loads(run.read_text())["questions"][0]["documents"] == [f"{URL}7", "x"]


def test_existing_index_is_used_by_default(tmp_path: Path, somewhere: str) -> None:
    run = write(tmp_path / "run", f"{URL}7", f"{URL}8")
    result = run_lint(run, somewhere)
    assert result.exit_code == 1
    assert result.stdout == (
        "question 0 (id q), document 1: PMID 8 is missing or deleted in index version v000001\n"
    )
    assert "against index version v000001" in result.stderr
    assert run_lint(run, somewhere, "--no-index").exit_code == 0


def test_unknown_pmids_are_dropped_only_with_index_option(tmp_path: Path, somewhere: str) -> None:
    run = write(tmp_path / "run", f"{URL}7", f"{URL}8")
    fix = ("--fix", "--output", tmp_path / "out", somewhere)
    assert run_lint(run, *fix).exit_code == 1
    assert run_lint(run, "--index", *fix).exit_code == 0
    assert json.loads((tmp_path / "out").read_text())["questions"][0]["documents"] == [f"{URL}7"]


def test_missing_index_or_output_is_bad_input(tmp_path: Path, nowhere: str) -> None:
    with pytest.raises(InputError, match="no index here"):
        run_lint(write(tmp_path / "run"), "--index", nowhere)
    for options in (["--fix"], ["--output", "out"]):
        with pytest.raises(InputError, match="go together"):
            run_lint(write(tmp_path / "run"), nowhere, *options)


def test_unanswered_questions_of_the_noted_file_are_named(tmp_path: Path, nowhere: str) -> None:
    run = write(tmp_path / "run.json", f"{URL}7", ideal_answer="Iron is stored.")
    rows = [{"id": id_, "type": "summary", "body": "Why?"} for id_ in ("q", "q9")]
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    assert "q9" not in run_lint(run, nowhere).output
    note_questions(run, asked)
    found = run_lint(run, nowhere)
    assert found.exit_code == 1
    assert "1 of 2 questions have no answer: q9" in found.output
    asked.unlink()
    assert "q9" not in run_lint(run, nowhere).output
