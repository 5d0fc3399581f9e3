"""`citeray lint`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cluster.errors import InputError
from cluster.index.manifest import current_version
from commands.context import Config, Context, Json, Overrides, make_context
from evaluation.lint.lint_run import (
    check_run,
    noted_questions,
    read_asked,
    read_run_file,
    write_run_file,
)
from evaluation.lint.note_problems import Problem

if TYPE_CHECKING:
    from evaluation.find_citations import CitationLookup


RunArgument = Annotated[Path, typer.Argument(help="The run file.")]
Questions = Annotated[
    Path | None,
    typer.Option(
        help="Questions, topics or gold of the run, to name unanswered questions (default: the "
        "file from which `citeray answer` made the run)."
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="bioasq, synergy, biogen-a or biogen-b (default: detected)."),
]
Index = Annotated[
    bool | None,
    typer.Option(
        "--index/--no-index",
        help="Check PMIDs and offsets against the index (default: if there is one). "
        "With --index, --fix drops PMIDs that are not in it.",
    ),
]
Fix = Annotated[
    bool,
    typer.Option(
        "--fix",
        help="Repair the problems that can be repaired safely, and write the result to --output.",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File that --fix writes; may be RUN itself.")
]


def lint(
    run: RunArgument,
    questions: Questions = None,
    run_format: Format = None,
    index: Index = None,
    fix: Fix = False,
    output: Output = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Find problems in a run file before it is scored or submitted.

    The exit code is 1 if a problem is found and not repaired.
    """
    if fix != (output is not None):
        raise InputError("--fix and --output FILE go together; FILE may be the run itself")
    context = make_context(config, overrides, json)
    read = read_run_file(run, run_format)
    questions = questions or noted_questions(run)
    asked = read_asked(questions) if questions else None
    lookup = _open_lookup(context, index)
    checked = check_run(read, asked, lookup, drop_unknown=bool(index))
    done: list[str] = []
    if output is not None:
        done = checked.done
        read = replace(read, rows=checked.rows)
        write_run_file(output, read)
        checked = check_run(read, asked, lookup, drop_unknown=bool(index))
    report: dict[str, Any] = {
        "run": str(run),
        "format": read.format,
        "index_version": lookup.version if lookup else None,
        "problems": [{**asdict(p), "mendable": p.mendable} for p in checked.problems],
        "done": done,
    }
    if json:
        context.print_json(report)
    else:
        if questions:
            context.log.print(f"questions: {questions}")
        _print(context, report, checked.problems, output)
    raise typer.Exit(1 if checked.problems else 0)


def _open_lookup(context: Context, index: bool | None) -> CitationLookup | None:
    if index is False:
        return None
    settings = context.settings
    path = settings.index.path
    if current_version(settings.index.location) is None:
        if index:
            raise InputError(
                f"--index: {path}: no index here; name another with --set index.path=DIR"
            )
        return None
    from evaluation.find_citations import CitationLookup

    return CitationLookup(settings)


def _print(
    context: Context, report: dict[str, Any], problems: tuple[Problem, ...], output: Path | None
) -> None:
    lines = [f"mended: {done}" for done in report["done"]]
    for problem in problems:
        mend = f" (--fix {problem.mend})" if problem.mendable else ""
        lines.append(f"{problem.place}: {problem.message}{mend}")
    for line in lines:
        context.out.print(line, soft_wrap=True, highlight=False)
    version = report["index_version"]
    against = f"against index version {version}" if version else "without an index"
    mended = f", {len(report['done'])} mended -> {output}" if output else ""
    context.log.print(
        f"{report['run']}: {report['format']}, checked {against}: {len(problems)} problems{mended}",
    )
