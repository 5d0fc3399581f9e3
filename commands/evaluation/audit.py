"""`citeray audit`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cluster.answers import NOT_ENOUGH
from commands.context import Config, Json, Overrides, make_context
from evaluation.audit.audit_answers import Concern, audit_answers
from evaluation.audit.read_answers import read_answers


def audit(
    answers: Annotated[
        Path,
        typer.Argument(
            help="JSON lines of /v1/answer replies, or a run file of BioASQ, Synergy or BioGen."
        ),
    ],
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """List stored answers that cite articles since retracted, deleted or revised.

    Checks the citations against the index at index.path and prints a line for each answer and PMID,
    the most serious first. The exit code is 1 if there are any, and 2 if the index or the file
    cannot be read.
    """
    from evaluation.find_citations import CitationLookup

    context = make_context(config, overrides, json)
    found = audit_answers(read_answers(answers), CitationLookup(context.settings))
    if json:
        context.print_json(asdict(found))
    else:
        for concern in found.concerns:
            context.out.print(_line(concern), soft_wrap=True, highlight=False)
    context.log.print(
        f"{answers}: {_counted(found.answers, 'answer')}, "
        f"{_counted(found.citations, 'citation')} against index version {found.index_version}: "
        f"{_counted(len(found.concerns), 'citation')} with a problem",
    )
    raise typer.Exit(1 if found.concerns else 0)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _line(concern: Concern) -> str:
    problems = "; ".join(
        reason.detail if reason.kind == concern.kind else f"{reason.kind}: {reason.detail}"
        for reason in concern.reasons
    )
    known = " (marked so in the answer)" if concern.known else ""
    if concern.verdict == NOT_ENOUGH:
        known += " (the verdict is not enough evidence)"
    cited = ", ".join(concern.cited_by)
    return f"{concern.kind}{known}: {concern.answer}, PMID {concern.pmid}, {cited}: {problems}"
