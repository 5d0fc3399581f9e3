"""Options shared by the commands that ask questions, and the choice of endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from cluster.answers import QUESTION_TYPES
from cluster.errors import InputError, cut
from cluster.index.filters.filters import FLAGS, VALUES, as_day
from cluster.settings.presets import (
    is_file,
    is_system,
    load_system,
    name_of,
    nearest_system,
)
from commands.context import Context, with_setting
from commands.language_model import hint_at_local_server, with_language_model
from serve.client.open_client import Client, running_client
from serve.contracts.request_forms import AnswerRequest, explain_problems

_LISTS = (*VALUES, "all_of")
KEYS = ("year_from", "year_to", *_LISTS, *FLAGS)
_FLAG_WORDS = {"true": True, "yes": True, "false": False, "no": False}

# Panels of `--help` for the options of commands that ask questions.
ARTICLES = "Which articles to use"
ANSWERING = "How to answer"

SystemOption = Annotated[
    str | None,
    typer.Option(
        "--system",
        metavar="PRESET",
        rich_help_panel=ANSWERING,
        help="A preset, or a YAML file of your own (default: serve.system).",
    ),
]


AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="SOURCE",
        rich_help_panel=ARTICLES,
        help="Use the index as it was after this source, such as pubmed26n1340.xml.gz.",
    ),
]


FilterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="KEY=VALUE",
        rich_help_panel=ARTICLES,
        help=f"Find only matching citations: {', '.join(KEYS)}. Repeat for several.",
    ),
]
DesignOption = Annotated[
    list[str] | None,
    typer.Option(
        "--design",
        metavar="DESIGN",
        rich_help_panel=ARTICLES,
        help="Find only studies of this design, such as randomised_trial. Repeat for several.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="DAY",
        rich_help_panel=ARTICLES,
        help="Find nothing published after this day, such as 2024-05-31.",
    ),
]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen preset, and the context whose settings define it.

    `here` says why a running endpoint cannot be used, or is "" if it can.
    """

    context: Context
    system: str
    here: str = ""


def read_filters(
    given: Sequence[str] | None, until: str | None, designs: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the `filters` of a request; a repeated list key collects several values.

    Raises InputError for text that is not KEY=VALUE, for an unknown key and for an `until` that is
    not a day.
    """
    if until:
        as_day(until, "--until")
    filters: dict[str, Any] = {"until": until} if until else {}
    filters |= {"design": list(designs)} if designs else {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or key not in KEYS:
            raise InputError(f"--filter {cut(text)}: give KEY=VALUE with one of {', '.join(KEYS)}")
        if key in _LISTS:
            filters.setdefault(key, []).append(value)
        elif key in FLAGS:
            filters[key] = _FLAG_WORDS.get(value.casefold(), value)
        else:
            filters[key] = int(value) if value.isascii() and value.isdigit() else value
    return filters


def check_request(request: Mapping[str, Any]) -> None:
    """Raise InputError, naming the options at fault, if the request is not valid."""
    try:
        AnswerRequest.model_validate(dict(request)).filters.as_filters()
    except ValidationError as error:
        raise InputError(explain_options(error.errors())) from error


def explain_options(problems: Sequence[Any]) -> str:
    """Return what is wrong with a request, naming the options that set its fields."""
    return explain_problems([{**item, "loc": _option(item["loc"])} for item in problems])


def _option(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the option that sets the field at `keys` of a request."""
    if keys[:1] == ("filters",) and len(keys) > 1:
        name = str(keys[1])
        return (f"--{name}" if name in ("until", "design") else f"--filter {name}",)
    return keys


def read_turns(files: Sequence[Path] | None) -> list[dict[str, str]]:
    """Return the earlier turns of a request, oldest first, from `citeray ask --json` replies.

    Raises InputError, naming the file, for a file that is not a reply.
    """
    turns = []
    for file in files or ():
        try:
            reply = json.loads(file.read_text(encoding="utf-8"))
            asked = (reply.get("understood") or {}).get("question") or reply["question"]["body"]
            said = " ".join(sentence["text"] for sentence in reply.get("ideal", ()))
        except OSError as error:
            raise InputError(f"--after {file}: cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"--after {file}: not an answer; write one with `citeray ask QUESTION -o {file}`"
            ) from error
        turns.append({"question": asked, "answer": said})
    return turns


def check_options(
    context: Context,
    system: str | None,
    question_type: str = "unknown",
    as_of: str | None = None,
    until: str | None = None,
    llm: str | None = None,
) -> Chosen:
    """Check the options and choose the preset.

    Raises InputError for an unknown preset or question type, for an invalid preset file, for an
    `until` that is not a day, and for an unusable `llm` (see `with_language_model`).
    """
    here = ""
    if as_of:
        context, here = with_setting(context, "serve.as_of", as_of), f"as of {as_of}"
    if until:
        as_day(until, "--until")
        context, here = with_setting(context, "serve.until", until), f"until {until}"
    if llm:
        context, here = with_language_model(context, llm), "--llm names the language model"
    if system is not None and is_file(system):
        name, path = name_of(system), str(Path(system).absolute())
        context = with_setting(context, f"serve.systems.{name}", path)
        system, here = name, f"{name} is a preset of your own"
    settings = context.settings
    chosen = system or settings.serve.system
    if not is_system(chosen):
        raise InputError(f"--system {chosen}: unknown; {nearest_system(chosen)}")
    if question_type not in QUESTION_TYPES:
        known = ", ".join(kind for kind in QUESTION_TYPES if kind != "unknown")
        raise InputError(f"--type {question_type}: unknown; there are: {known}")
    return Chosen(context, chosen, here)


def open_client(chosen: Chosen, *, answers: bool) -> Client:
    """Connect to the running endpoint if there is one; otherwise start a graph in this process.

    The local graph loads the language model only if the preset uses it. It is always used for
    presets from a file and for earlier versions of the index, which an endpoint cannot serve.
    """
    context, settings = chosen.context, chosen.context.settings
    if chosen.here:
        context.log.print(f"{chosen.here}; loading the index and the models")
    else:
        found = running_client(settings)
        if found is not None:
            return found
        context.log.print(
            f"no endpoint at {settings.serve.host}:{settings.serve.port}; loading the index and "
            "the models (an endpoint, started with `citeray serve`, keeps them loaded)"
        )
    # Imported here, because importing the graph takes seconds, and a running endpoint makes it
    # unnecessary.
    from serve.answer.ask_model import asks_model
    from serve.client.local_client import local_client

    if answers:
        hint_at_local_server(context)
    model = asks_model(settings, load_system(chosen.system), answers=answers)
    return local_client(settings, context.progress, model=model)
