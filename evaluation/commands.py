"""`citeray evaluate`."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cluster.cli import Json, make_context
from evaluation.bootstrap import Interval, differences, intervals
from evaluation.read_bioasq import read_gold, read_run
from evaluation.score_bioasq import score_run
from evaluation.scores import Scores

NO_DIFFERENCE = "no difference shown"


def register(app: typer.Typer) -> None:
    app.command("evaluate")(evaluate)


def evaluate(
    run: Annotated[Path, typer.Argument(help="The run file, as `citeray answer` writes it.")],
    gold: Annotated[Path, typer.Argument(help="The gold file, BioASQ's JSON.")],
    against: Annotated[
        Path | None, typer.Option(help="Another run: is the first better, by more than chance?")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    json: Json = False,
) -> None:
    """BioASQ's measures of a run, each with its 95% bootstrap interval."""
    context = make_context(None, None, json)
    wanted = read_gold(gold)
    scores = score_run(wanted, read_run(run, wanted))
    found = intervals(scores, seed=seed)
    compared: dict[str, Interval] = {}
    if against is not None:
        compared = differences(scores, score_run(wanted, read_run(against, wanted)), seed=seed)
    if scores.missing:
        context.log.print(
            f"{run}: {len(scores.missing)} of {len(wanted)} gold questions have no answer and "
            "are in no mean (as in the official program)",
            soft_wrap=True,
        )
    if json:
        context.print_json(_plain(scores, found, compared))
        return
    context.out.print(_table(scores, found, compared))


def verdict(difference: Interval) -> str:
    """ "better" or "worse" only where the interval excludes 0."""
    if not difference.excludes_zero:
        return NO_DIFFERENCE
    return "better" if difference.value > 0 else "worse"


def _plain(
    scores: Scores, found: dict[str, Interval], compared: dict[str, Interval]
) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "questions": len(scores.ids),
        "missing": list(scores.missing),
        "measures": {n: asdict(i) for n, i in found.items() if not math.isnan(i.value)},
    }
    if compared:
        plain["against"] = {
            name: {**asdict(interval), "verdict": verdict(interval)}
            for name, interval in compared.items()
            if not math.isnan(interval.value)
        }
    return plain


def _table(scores: Scores, found: dict[str, Interval], compared: dict[str, Interval]) -> Table:
    table = Table(title=f"{len(scores.ids)} questions, 95% bootstrap intervals")
    for heading in ("measure", "value", "low", "high"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    if compared:
        for heading in ("difference", "low", "high", "verdict"):
            table.add_column(heading, justify="right")
    for name in scores.names:
        interval = found.get(name)
        if interval is None or math.isnan(interval.value):
            continue
        cells = [name, *_numbers(interval)]
        if name in compared:
            cells += [*_numbers(compared[name]), verdict(compared[name])]
        table.add_row(*cells)
    return table


def _numbers(interval: Interval) -> list[str]:
    return [f"{number:.4f}" for number in (interval.value, interval.low, interval.high)]
