"""What the commands that ask questions share: the preset to use, and where to ask."""

from __future__ import annotations

from typing import Annotated

import typer

from cluster.answers import QUESTION_TYPES
from cluster.errors import InputError
from cluster.settings.settings import load_system, nearest_system, system_names
from commands.context import Context
from serve.client.open_client import Client, local_client, running_client

SystemOption = Annotated[
    str | None, typer.Option("--system", help="A preset; the settings' serve.system if not given.")
]


def check_options(context: Context, system: str | None, question_type: str = "unknown") -> str:
    """The system to use; InputError for a name that isn't one."""
    chosen = system or context.settings.serve.system
    if chosen not in system_names():
        raise InputError(f"--system {chosen}: unknown; {nearest_system(chosen)}")
    if question_type not in QUESTION_TYPES:
        raise InputError(f"--type {question_type}: unknown; there are: {', '.join(QUESTION_TYPES)}")
    return chosen


def open_client(context: Context, system: str, *, answers: bool) -> Client:
    """The running endpoint where there is one; otherwise a graph started for the command.

    That graph loads the language model only if the preset asks it.
    """
    from serve.answer.ask_model import asks_model

    settings = context.settings
    found = running_client(settings)
    if found is not None:
        return found
    context.log.print(
        f"no endpoint at {settings.serve.host}:{settings.serve.port}; loading the graph here"
    )
    model = asks_model(settings, load_system(system), answers=answers)
    return local_client(settings, context.log, model=model)
