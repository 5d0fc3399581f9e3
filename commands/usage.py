"""Errors and help texts of the command line in plain words, instead of Typer's own."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import typer
from pydantic import ValidationError

from cluster.errors import cut
from cluster.problem_words import problem_words

# Typer's copy of click's UsageError has no public name.
UsageError: Any = typer.BadParameter.__base__


def explain_usage(error: Any) -> str:
    """Return one sentence for a UsageError: what is wrong, and which help explains the usage.

    Returns "" if there is nothing to explain, because a group without a command printed its help.
    """
    problem = _problem(error)
    if not problem or error.ctx is None:
        return problem
    joint = " See" if problem.endswith("?") else "; see"
    return f"{problem}{joint} `{error.ctx.command_path} --help`"


def _problem(error: Any) -> str:
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        problem = cause.errors()[0]
        name, words = max(error.param.opts, key=len), problem_words(problem).rstrip(".")
        # The message about an invalid choice quotes the given value.
        given = "" if problem["type"] == "value_error" else f" {cut(str(problem['input']))}"
        return f"{name}{given}: {words}"
    if near := getattr(error, "possibilities", None):
        return f"{error.message} (did you mean {' or '.join(sorted(near))}?)"
    return str(error.format_message()).rstrip(".")


def tidy_help(command: Any) -> None:
    """Rejoin wrapped lines of the help of a command and of its subcommands.

    Typer keeps the line breaks of a docstring after its first paragraph.
    """
    paragraphs = cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
    for child in getattr(command, "commands", {}).values():
        tidy_help(child)
