"""`citeray rate`: answers rated by two people."""

from __future__ import annotations

import json as jsonlib
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commands.context import Json, make_context
from commands.evaluation.output_file import Output, write_output

if TYPE_CHECKING:
    from evaluation.ratings.agreement import Agreement
    from evaluation.ratings.ratings_files import Ratings

rate = typer.Typer(
    help="Let two people rate answers from 1 to 5, and measure how far they agree.",
    no_args_is_help=True,
    add_completion=False,
)

ALL = "all answers"


@rate.command("sheet")
def write_sheet(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run files whose ideal answers to rate.")
    ],
    questions: Annotated[
        Path, typer.Option(help="File of their questions: BioASQ's (gold or not) or BioGen's.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Page to write; its key is written beside it.")
    ],
    run_format: Annotated[
        str | None,
        typer.Option("--format", help="bioasq, synergy or biogen-b; guessed if not given."),
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="Draw this many questions; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(help="Random seed of draw and answer order.")] = 0,
    json: Json = False,
) -> None:
    """Write a blind rating page for two people from the ideal answers of one or more runs.

    The criteria are BioASQ's: readability, recall, precision and repetition. The key, written
    beside the page as PAGE.key.json, tells which run each answer comes from; keep it from the
    raters.
    """
    from evaluation.ratings.rating_sheet import make_sheet
    from evaluation.ratings.ratings_files import key_as_json
    from evaluation.ratings.render_sheet import render_sheet
    from evaluation.tables.challenge_tables import name_runs

    context = make_context(None, None, json)
    sheet = make_sheet(name_runs(runs), questions, run_format, sample=sample, seed=seed)
    key = output.with_name(f"{output.stem}.key.json")
    write_output(key, f"{key_as_json(sheet)}\n")
    write_output(output, f"{render_sheet(sheet)}\n")
    if json:
        told = {"output": str(output), "key": str(key), "questions": len(sheet.questions)}
        context.print_json({**told, "answers": len(sheet.key)})
    else:
        context.out.print(
            f"{len(sheet.key)} answers to {len(sheet.questions)} questions -> {output}; the runs' "
            f"names are in {key}",
            soft_wrap=True,
            highlight=False,
        )


@rate.command("agree")
def print_agreement(
    one: Annotated[Path, typer.Argument(help="The ratings that one person downloaded.")],
    other: Annotated[Path, typer.Argument(help="The ratings of the other person.")],
    key: Annotated[
        Path | None,
        typer.Option(help="Key of the sheet, for means by run (default: over all answers)."),
    ] = None,
    output: Output = None,
    json: Json = False,
) -> None:
    """Print the mean ratings of each run by BioASQ's four criteria, and how far two people agree.

    Agreement is the share of equal ratings, of those at most 1 apart, and Cohen's kappa with
    quadratic weights.
    """
    from evaluation.ratings.agreement import agree, check_pair, mean_ratings
    from evaluation.ratings.ratings_files import read_key, read_ratings

    first, second = read_ratings(one), read_ratings(other)
    check_pair(first, second)
    runs: Mapping[str, str] = (
        read_key(key, first.sheet)
        if key is not None
        else dict.fromkeys([*first.given, *second.given], ALL)
    )
    means = mean_ratings((first, second), runs)
    found = agree(first, second)
    if json:
        plain = {
            "raters": [first.rater, second.rater],
            "means": {run: _plain(own) for run, own in means.items()},
            "agreement": [_plain(asdict(criterion)) for criterion in found],
        }
        text = jsonlib.dumps(plain, ensure_ascii=False)
    else:
        text = _markdown(first, second, means, found)
    write_output(output, f"{text}\n")


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
    }


def _markdown(
    first: Ratings,
    second: Ratings,
    means: Mapping[str, Mapping[str, float]],
    found: list[Agreement],
) -> str:
    from evaluation.ratings.rating_sheet import CRITERIA
    from evaluation.tables.markdown import Column, Table, escape, render_table, table_lines

    rows = [
        [row.criterion, str(row.answers), *map(_two_digits, (row.equal, row.within_one, row.kappa))]
        for row in found
    ]
    headings = ["Criterion", "Answers rated by both", "Equal", "At most 1 apart", "Weighted kappa"]
    ratings = Table(
        "Manual scores",
        tuple(map(Column, CRITERIA)),
        {run: tuple(own.values()) for run, own in means.items()},
    )
    return "\n".join(
        [
            render_table(ratings, digits=2),
            "",
            f"### Agreement of {escape(first.rater)} and {escape(second.rater)}",
            "",
            *table_lines(headings, rows),
        ]
    )


def _two_digits(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:z.2f}"
