"""`citeray table`."""

from __future__ import annotations

import json as jsonlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cluster.errors import InputError
from commands.context import Config, Json, Overrides, make_context
from commands.evaluation.evaluate import AllowEmpty, BertScore, Bleu, Feedback, Format
from commands.evaluation.output_file import Output, write_output
from evaluation.bioasq.score_question import MAX_ITEMS
from evaluation.evaluate_run import Request, evaluate_run
from evaluation.evaluated import Evaluated
from evaluation.lint.lint_run import read_run_file
from evaluation.tables import (
    LAYOUTS,
    Table,
    check_same_questions,
    make_tables,
    name_runs,
    render_table,
)

MAX_DEPTH = 1000

Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN", help="Run files of one format, one row each.")
]
Gold = Annotated[
    Path, typer.Option(help="Gold file of BioASQ or Synergy, or BioGen's judgements or topics.")
]
Depth = Annotated[
    int,
    typer.Option(
        min=1,
        max=MAX_DEPTH,
        help="Number of documents and snippets scored per question (officially 10).",
    ),
]


def table(
    runs: Runs,
    gold: Gold,
    run_format: Format = None,
    feedback: Feedback = None,
    depth: Depth = MAX_ITEMS,
    bleu: Bleu = False,
    bertscore: BertScore = None,
    allow_empty: AllowEmpty = False,
    output: Output = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Print result tables of several runs in the columns of BioASQ, Synergy or BioGen.

    The tables are Markdown. Each run has a row with the name of its file, and the best value of
    each column is bold. The values are those of `citeray evaluate`. With --bleu or --bertscore,
    answers are also compared as texts, by question type.
    """
    context = make_context(config, overrides, json)
    named = name_runs(runs)
    form = common_form(named, run_format)
    request = Request(
        gold,
        run_format,
        tuple(feedback or ()),
        bleu=bleu,
        bertscore=bertscore,
        allow_empty=allow_empty,
        depth=depth,
    )
    evaluated: dict[str, Evaluated] = {}
    for name, run in named.items():
        evaluated[name] = evaluate_run(run, request, context.settings, lambda _: None)
        for note in evaluated[name].notes:
            context.log.print(f"{run}: {note}")
    check_same_questions(named, evaluated)
    tables = make_tables(evaluated, form, depth)
    questions = len(next(iter(evaluated.values())).scores.ids)
    if json:
        text = jsonlib.dumps(_plain(tables, form, depth, questions), ensure_ascii=False)
    else:
        head = f"{questions:,} questions of {gold.name}"
        text = "\n\n".join([head, *map(render_table, tables)])
    write_output(output, f"{text}\n")


def common_form(runs: Mapping[str, Path], run_format: str | None) -> str:
    """Return the format of all runs. Raises InputError if two formats have different columns."""
    forms = {run: read_run_file(run, run_format).format for run in runs.values()}
    (first, form), *others = forms.items()
    for other, theirs in others:
        if LAYOUTS[theirs] is not LAYOUTS[form]:
            raise InputError(
                f"{other}: its format is {theirs}, and that of {first} is {form}; make a table for "
                "each format"
            )
    return form


def _plain(tables: list[Table], form: str, depth: int, questions: int) -> dict[str, Any]:
    return {
        "format": form,
        "depth": depth,
        "questions": questions,
        "tables": [
            {
                "title": table.title,
                "rows": {
                    name: {
                        column.name: None if math.isnan(value) else value
                        for column, value in zip(table.columns, values, strict=True)
                    }
                    for name, values in table.rows.items()
                },
            }
            for table in tables
        ],
    }
