"""Options that every command accepts, and the consoles that commands write to."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console

from cluster.settings.presets import name_systems
from cluster.settings.settings import Settings, load_settings
from commands.terminal import make_console, make_log_console


@dataclass(frozen=True, slots=True)
class Context:
    """The global options. Results go to standard output, everything else to standard error.

    `stdout` is the original standard output, which cluster.ray.session redirects later.
    """

    config: str | None
    overrides: tuple[str, ...]
    json: bool
    stdout: TextIO = field(default_factory=lambda: sys.stdout)

    @property
    def settings(self) -> Settings:
        """Load the settings of `--config` and `--set`; raise InputError if they are invalid.

        Also registers the presets that the settings name.
        """
        settings = load_settings(self.config, self.overrides)
        name_systems(settings.serve.systems)
        return settings

    @property
    def out(self) -> Console:
        """Console for results, on standard output."""
        return make_console(self.stdout)

    @property
    def log(self) -> Console:
        """Console for progress and messages, on standard error."""
        return make_log_console()

    @property
    def progress(self) -> Console:
        """Console for the steps of starting a graph: `log`, but silent with --json."""
        return make_log_console(quiet=self.json)

    def print_json(self, value: Any) -> None:
        """Print one JSON document to standard output."""
        print(json_text(value), end="", file=self.stdout, flush=True)


def json_text(value: Any) -> str:
    """Return a value, which may be a dataclass, as one line of JSON."""
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return json.dumps(plain, ensure_ascii=False, default=str) + "\n"


# Panel of `--help` for the options that every command has.
SETTINGS = "Settings and output"

Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        rich_help_panel=SETTINGS,
        help="Settings file, or the name of a shipped one.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        rich_help_panel=SETTINGS,
        help="Override one setting, such as index.shards=4.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", rich_help_panel=SETTINGS, help="Print machine-readable output.")
]


def make_context(config: str | None, overrides: list[str] | None, json_output: bool) -> Context:
    """Create the context of a command from its global options."""
    return Context(config, tuple(overrides or ()), json_output)


def with_setting(context: Context, key: str, value: str) -> Context:
    """Return the context with `--set key=value` added; `value` may have any characters."""
    setting = f"{key}={json.dumps(value, ensure_ascii=False)}"
    return replace(context, overrides=(*context.overrides, setting))
