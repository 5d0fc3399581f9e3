"""The `citeray` command: each command's module is loaded when it is asked for.

Exit codes: 0 done, 1 failed, 2 wrong usage or bad input.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from cluster.errors import NO_MEMORY, CiteRayError, one_line
from cluster.loopback import keep_loopback_off_proxies
from cluster.ray.ray_access import keep_to_this_machine
from commands.terminal import finish_output, make_log_console, prepare_output

# Each command's module beside this one and its name there, with the first line of its help:
# `citeray --help` loads none of them.
COMMANDS = {
    "download": (
        ".download:download",
        "Fetch PubMed's files and check each against its md5; run again, fetch what is missing.",
    ),
    "sample": (
        ".index_jobs.index:write_sample_corpus",
        "Write the sample corpus: illustrative citations in PubMed XML, and forty questions.",
    ),
    "index": (".index_jobs.index:index", "Build, update and inspect the index."),
    "search": (".ask:search", "Ranked citations for a question."),
    "ask": (".ask:ask", "A cited answer to a question."),
    "answer": (
        ".answer:answer",
        "A batch of questions to a run file; an interrupted batch goes on where it stopped.",
    ),
    "remember": (
        ".answer:remember",
        "Keep approved answers as few-shot examples, a version a round, in llm.examples.",
    ),
    "feedback": (
        ".saved.feedback:feedback",
        "What people said of stored answers: listed, reviewed, exported as BioASQ's gold.",
    ),
    "watch": (
        ".saved.watch:watch",
        "Saved questions: asked again after each version of the index, with what changed.",
    ),
    "export": (
        ".export:export",
        "Citations as a file for reference managers, or as a styled reference list.",
    ),
    "serve": (".ask:serve", "The endpoint in the foreground, until interrupted."),
    "demo": (
        ".ask:demo",
        "Sample corpus, index, endpoint, three cited answers; then everything stops.",
    ),
    "evaluate": (
        ".evaluation.evaluate:evaluate",
        "A run's measures, each with its 95% bootstrap interval: BioASQ, Synergy, BioGen, RAGAS.",
    ),
    "table": (
        ".evaluation.table:table",
        "Result tables of several runs in the columns of BioASQ, Synergy or BioGen, as Markdown.",
    ),
    "rate": (
        ".evaluation.rate:rate",
        "Let two people rate answers from 1 to 5, and measure how far they agree.",
    ),
    "ablate": (
        ".evaluation.ablate:ablate",
        "Runs presets over questions and shows what each brings, with 95% bootstrap intervals.",
    ),
    "reproduce": (
        ".evaluation.reproduce:reproduce",
        "A paper's experiment: its systems run, its tables beside ours, and what differs still.",
    ),
    "questions": (
        ".evaluation.questions:questions",
        "Questions by topic and type, whole rows as they are, so that a gold file stays one.",
    ),
    "lint": (
        ".evaluation.lint:lint",
        "What is wrong with a run file, before it is scored or sent in; 1 if anything is.",
    ),
    "audit": (
        ".evaluation.audit:audit",
        "Which stored answers cite what was since retracted, deleted or revised; 1 if any.",
    ),
    "plan": (
        ".plan:plan",
        "Shards, replicas, memory, hours and cost for a corpus and a load.",
    ),
    "train": (".train:train", "Train the small models: adapters of the encoder."),
    "job": (".job:job", "Commands as jobs on a Ray cluster."),
    "models": (".models:models", "The models that the settings name."),
    "version": (".cli:print_version", "The version of CiteRay."),
}


class LazyGroup(TyperGroup):
    """The commands of COMMANDS: shown by what stands there, loaded to be run."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()
        }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command by name; it is loaded here only to complete its own options."""
        # Completion asks for a command's own options.
        if ctx.resilient_parsing and cmd_name in COMMANDS:
            return load_command(cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Load the module of the command that is about to run."""
        name, shown, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name and shown else shown, rest


def load_command(name: str) -> Any:
    """The command `name`, its module imported."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found: Any = getattr(import_module(module, __package__), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(
            context_settings=HELP, pretty_exceptions_enable=False, add_completion=False
        )
        alone.command(name)(found)
        found = alone
    command = get_command(found)
    command.name = name
    return command


OURS = {
    "citeray", "cluster", "commands", "configs", "evaluation", "pipelines", "planning", "serve"
}  # fmt: skip
# Typer's copy of click's UsageError has no public name.
WrongUsage: Any = typer.BadParameter.__base__
HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="citeray",
    cls=LazyGroup,
    help="Cited answers to biomedical questions from all of PubMed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)


def print_version() -> None:
    """The version of CiteRay."""
    print(version("citeray"))


def _version_first(asked: bool) -> None:
    if asked:
        print_version()
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_version_first, is_eager=True, help="Print the version."),
]


@app.callback()
def _citeray(show: Version = False) -> None:
    pass


def main() -> None:
    """Run the command line; an error is one line on standard error, with --json an object."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    keep_to_this_machine()
    keep_loopback_off_proxies()
    prepare_output()
    as_json = "--json" in sys.argv
    try:
        try:
            # Typer itself shows wrong usage in a box, and exits.
            sys.exit(app(standalone_mode=not as_json))
        finally:
            finish_output()
    except (CiteRayError, WrongUsage) as error:
        told = error.format_message() if isinstance(error, WrongUsage) else str(error)
        _end(told, error.exit_code, as_json=as_json)
    except MemoryError:
        _end(NO_MEMORY, 1, as_json=as_json)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing in OURS:
            raise
        told = f"{missing} is not installed; install the wheel with its extra [cpu] or [gpu]"
        _end(told, 2, as_json=as_json)


def _end(told: str, code: int, *, as_json: bool) -> NoReturn:
    if as_json:
        print(json.dumps({"error": one_line(told)}), file=sys.stderr)
    else:
        make_log_console().print(f"citeray: {one_line(told)}", style="red")
    sys.exit(code)


if __name__ == "__main__":
    main()
