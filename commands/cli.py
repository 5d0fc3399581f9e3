"""The `citeray` command line; each command's module is imported only when it runs.

Exit codes: 0 success, 1 failure, 2 wrong usage or bad input.
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
from cluster.ray.ray_access import TERMINATED, exit_on_sigterm, keep_to_this_machine
from commands.terminal import finish_output, make_log_console, prepare_output
from commands.usage import UsageError, explain_usage, tidy_help

# Groups of `citeray --help`. Each command has its module and attribute, and the first line of its
# help, so that `citeray --help` imports none of the modules.
GROUPS = {
    "Build and maintain an index": {
        "download": (
            ".download:download",
            "Download PubMed files and check each against its md5; run again to fetch missing "
            "files.",
        ),
        "sample": (
            ".index_jobs.index:write_sample_corpus",
            "Write the sample corpus: illustrative citations in PubMed XML, and forty questions.",
        ),
        "index": (".index_jobs.index:index", "Build, update and inspect the index."),
        "plan": (
            ".plan:plan",
            "Plan shards, replicas, memory, hours and cost for a corpus and a load.",
        ),
    },
    "Ask questions": {
        "serve": (".ask:serve", "Run the endpoint in the foreground until interrupted."),
        "search": (".ask:search", "Search for citations that match a question."),
        "ask": (".ask:ask", "Answer a question with citations."),
        "strategy": (
            ".strategy:strategy",
            "Make a Boolean PubMed search strategy from a question, and measure it on the index.",
        ),
        "watch": (
            ".saved.watch:watch",
            "Manage saved questions, which are asked again after each new index version.",
        ),
        "export": (
            ".export:export",
            "Export citations for reference managers, or as a styled reference list.",
        ),
        "demo": (
            ".ask:demo",
            "Index the sample corpus, start the endpoint, ask three questions and stop.",
        ),
    },
    "Answer files of questions": {
        "questions": (
            ".evaluation.questions:questions",
            "Select questions of a BioASQ file by topic, by type or at random.",
        ),
        "answer": (
            ".answer:answer",
            "Answer a batch of questions and write a run file; an interrupted batch resumes.",
        ),
        "remember": (
            ".answer:remember",
            "Store approved answers as few-shot examples, one version per round, in llm.examples.",
        ),
        "feedback": (
            ".saved.feedback:feedback",
            "List, review and export users' feedback on stored answers.",
        ),
    },
    "Evaluate answers": {
        "lint": (
            ".evaluation.lint:lint",
            "Find problems in a run file before it is scored or submitted.",
        ),
        "evaluate": (
            ".evaluation.evaluate:evaluate",
            "Score a run against gold: BioASQ, Synergy or BioGen measures with 95% intervals.",
        ),
        "table": (
            ".evaluation.table:table",
            "Print result tables of several runs in the columns of BioASQ, Synergy or BioGen.",
        ),
        "ablate": (
            ".evaluation.ablate:ablate",
            "Compare presets over the same questions, with 95% bootstrap intervals.",
        ),
        "audit": (
            ".evaluation.audit:audit",
            "List stored answers that cite articles since retracted, deleted or revised.",
        ),
    },
    "Models and clusters": {
        "models": (".models:models", "List and download the models that the settings name."),
        "train": (".training.train:train", "Train the small models, and calibrate confidence."),
        "job": (".job:job", "Run commands as jobs on a Ray cluster."),
        "version": (".cli:print_version", "Print the version of CiteRay."),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


class LazyGroup(TyperGroup):
    """Group of the commands in COMMANDS; lists them without importing their modules."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, help=line, rich_help_panel=title)
            for title, group in GROUPS.items()
            for name, (_, line) in group.items()
        }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command by name, imported only if shell completion needs it."""
        if ctx.resilient_parsing and cmd_name in COMMANDS:
            return load_command(cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Load the module of the command that is about to run."""
        name, shown, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name and shown else shown, rest


def load_command(name: str) -> Any:
    """Import the module of the command `name` and return the command."""
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
    tidy_help(command)
    return command


# Packages of this project, whose absence is a defect and not a missing extra.
OURS = {
    "citeray", "cluster", "commands", "configs", "evaluation", "pipelines", "planning", "serve"
}  # fmt: skip
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
    """Print the version of CiteRay."""
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
    """Run the command line; print an error as one line, or as a JSON object with --json."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    exit_on_sigterm()
    keep_to_this_machine()
    keep_loopback_off_proxies()
    prepare_output()
    as_json = "--json" in sys.argv
    try:
        try:
            # Typer's standalone mode would print usage errors in its own format.
            sys.exit(app(prog_name="citeray", standalone_mode=False))
        finally:
            finish_output()
    except CiteRayError as error:
        _end(str(error), error.exit_code, as_json=as_json)
    except UsageError as error:
        if message := explain_usage(error):
            _end(message, error.exit_code, as_json=as_json)
        sys.exit(error.exit_code)
    except typer.Abort:
        _end("stopped: no more input", 1, as_json=as_json)
    except OSError as error:
        if error.filename is None:
            raise
        _end(f"{error.filename}: {error.strerror or error}", 1, as_json=as_json)
    except SystemExit as left:
        if left.code == TERMINATED:
            _end("stopped by SIGTERM", TERMINATED, as_json=as_json)
        raise
    except MemoryError:
        _end(NO_MEMORY, 1, as_json=as_json)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing in OURS:
            raise
        message = f"{missing} is not installed; install the wheel with its extra [cpu] or [gpu]"
        _end(message, 2, as_json=as_json)


def _end(message: str, code: int, *, as_json: bool) -> NoReturn:
    if as_json:
        print(json.dumps({"error": one_line(message)}), file=sys.stderr)
    else:
        make_log_console().print(f"citeray: {one_line(message)}", style="red")
    sys.exit(code)


if __name__ == "__main__":
    main()
