"""`citeray train calibration`: fit the confidence of answers on held-out questions."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster.errors import InputError
from cluster.storage.whole_files import write_atomically
from commands.context import Config, Json, Overrides, make_context
from commands.options import Chosen, SystemOption, check_options, open_client

if TYPE_CHECKING:
    from evaluation.calibrate.fit_calibration import Outcome


def train_calibration(
    questions: Annotated[
        list[Path] | None,
        typer.Argument(help="BioASQ files with gold answers that no model was trained on."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Calibration file to write, for reader.calibration."),
    ] = None,
    outcomes: Annotated[
        list[Path] | None,
        typer.Option(help="Outcomes of earlier runs, such as those of cross-validation."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="File to write the outcomes of these questions to.")
    ] = None,
    unanswerable: Annotated[
        bool, typer.Option(help="The index does not answer these questions: all answers are wrong.")
    ] = False,
    system: SystemOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Calibrate the confidence of answers, on which the error budget is based.

    Asks the questions, searching the index of the settings, scores each answer, and fits the
    probability that an answer is right for each type of question.
    """
    from evaluation.calibrate.fit_calibration import fit_calibration, read_outcomes

    if out is None and keep is None:
        raise InputError("nothing to write: name a file with --out or --keep")
    if keep and not questions:
        raise InputError("--keep writes the outcomes of questions: name files of questions")
    context = make_context(config, overrides, json)
    found = read_outcomes(outcomes or ())
    if questions:
        chosen = check_options(context, system, "unknown", None)
        found += _ask(chosen, questions, keep, unanswerable=unanswerable)
    if out is None:
        return
    made = json_module.dumps(fit_calibration(found), indent=1)
    write_atomically(out, f"{made}\n".encode())
    context.log.print(f"{len(found):,} outcomes -> {out}")


def _ask(
    chosen: Chosen, questions: Sequence[Path], keep: Path | None, *, unanswerable: bool
) -> list[Outcome]:
    from evaluation.calibrate.collect_outcomes import collect_outcomes
    from evaluation.calibrate.fit_calibration import write_outcomes

    asked: list[Outcome] = []
    with open_client(chosen, answers=True) as client:
        try:
            outcomes = collect_outcomes(
                questions, client.answer, chosen.system, unanswerable=unanswerable
            )
            asked.extend(outcomes)
        finally:
            # Store the outcomes even if a request fails.
            if keep and asked:
                write_outcomes(keep, asked)
    return asked
