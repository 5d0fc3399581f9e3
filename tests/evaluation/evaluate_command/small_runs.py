"""`citeray evaluate` on small files of every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from click.testing import Result
from typer.testing import CliRunner

from commands.evaluation.evaluate import evaluate
from tests.evaluation.lint import lint_runs
from tests.evaluation.lint.lint_runs import URL


def runner_of(command: Callable[..., None]) -> Callable[..., Result]:
    """Return a function that runs `command` with its arguments; exceptions pass through."""
    app = typer.Typer()
    app.command()(command)
    return lambda *words: CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)


run_evaluate = runner_of(evaluate)


def measures(*arguments: object) -> dict[str, float]:
    plain = json.loads(run_evaluate(*arguments, "--json").stdout)
    return {name: interval["value"] for name, interval in plain["measures"].items()}


def question(id_: str, kind: str = "summary", *documents: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "type": kind,
        "body": f"Is {id_} so?",
        "documents": [URL + d for d in documents],
        **fields,
    }


def snippet(document: str, begin: int, text: str) -> dict[str, Any]:
    return lint_runs.snippet(text, begin, begin + len(text), document=URL + document)


def write(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps({"questions": list(rows)}), encoding="utf-8")
    return path


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_list(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return path


def task_b(*pmids: int) -> dict[str, Any]:
    return {
        "metadata": {"team_id": "t", "run_id": "r", "topic_id": "116"},
        "responses": [{"text": "Aspirin inhibits fever.", "citations": [str(p) for p in pmids]}],
    }


def label(pmid: int, relation: str) -> dict[str, Any]:
    return {"topic_id": "116", "sentence_number": 1, "pmid": pmid, "relation": relation}
