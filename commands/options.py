"""What the commands that ask questions share: the preset to use, and where to ask."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from cluster.answers import QUESTION_TYPES
from cluster.errors import InputError
from cluster.settings.presets import (
    is_file,
    load_system,
    name_of,
    name_systems,
    nearest_system,
    system_names,
)
from commands.context import Context
from serve.client.open_client import Client, local_client, running_client

SystemOption = Annotated[
    str | None,
    typer.Option(
        "--system",
        help="A preset, or a YAML file of your own; the settings' serve.system if not given.",
    ),
]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The name of the preset to use, in a context that knows it; `own`: it came from a file."""

    context: Context
    system: str
    own: bool


def check_options(context: Context, system: str | None, question_type: str = "unknown") -> Chosen:
    """Raises InputError for a preset that there is not, and for a file that is none."""
    own = system is not None and is_file(system)
    if system is not None and own:
        name = name_of(system)
        setting = f"serve.systems.{name}={json.dumps(str(Path(system).absolute()))}"
        context, system = replace(context, overrides=(*context.overrides, setting)), name
    settings = context.settings
    name_systems(settings.serve.systems)
    chosen = system or settings.serve.system
    if chosen not in system_names():
        raise InputError(f"--system {chosen}: unknown; {nearest_system(chosen)}")
    if question_type not in QUESTION_TYPES:
        raise InputError(f"--type {question_type}: unknown; there are: {', '.join(QUESTION_TYPES)}")
    return Chosen(context, chosen, own)


def open_client(chosen: Chosen, *, answers: bool) -> Client:
    """The running endpoint where there is one; otherwise a graph started for the command.

    That graph loads the language model only if the preset asks it. An endpoint knows no preset of
    a file of one's own, so that such a one always has a graph here.
    """
    from serve.answer.ask_model import asks_model

    context, settings = chosen.context, chosen.context.settings
    if chosen.own:
        context.log.print(f"{chosen.system} is a preset of your own; loading the graph here")
    else:
        found = running_client(settings)
        if found is not None:
            return found
        context.log.print(
            f"no endpoint at {settings.serve.host}:{settings.serve.port}; loading the graph here"
        )
    model = asks_model(settings, load_system(chosen.system), answers=answers)
    return local_client(settings, context.log, model=model)
