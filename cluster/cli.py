"""The `citeray` command: global options here, the commands from pipelines/ and serve/.

Exit codes: 0 done, 1 failed, 2 wrong usage or bad input.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field, is_dataclass
from importlib.metadata import entry_points, version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.table import Table

from cluster.adapters import base_of, is_adapter
from cluster.errors import CiteRayError, one_line
from cluster.job_commands import job
from cluster.models import ModelStore, read_pins
from cluster.ray_access import keep_to_this_machine
from cluster.settings import Settings, load_settings

app = typer.Typer(
    name="citeray",
    help="Cited answers to biomedical questions from all of PubMed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
models = typer.Typer(help="The models that the settings name.", no_args_is_help=True)
app.add_typer(models, name="models")
app.add_typer(job, name="job")


@dataclass(frozen=True, slots=True)
class Context:
    """The global options. Results go to standard output, all else to standard error.

    Standard output is that of the command's start: a Ray session redirects it (cluster.session).
    """

    config: str | None
    overrides: tuple[str, ...]
    json: bool
    stdout: TextIO = field(default_factory=lambda: sys.stdout)

    @property
    def settings(self) -> Settings:
        return load_settings(self.config, self.overrides)

    @property
    def out(self) -> Console:
        return Console(file=self.stdout)

    @property
    def log(self) -> Console:
        return Console(stderr=True, highlight=False)

    def print_json(self, value: Any) -> None:
        """One JSON document on standard output."""
        plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        text = json.dumps(plain, ensure_ascii=False, default=str)
        print(text, file=self.stdout, flush=True)


Config = Annotated[
    str | None,
    typer.Option("--config", "-c", help="Settings file, or the name of a shipped one."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="One setting, such as index.shards=4."),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def make_context(config: str | None, overrides: list[str] | None, json_output: bool) -> Context:
    return Context(config, tuple(overrides or ()), json_output)


@models.command("list")
def list_models(config: Config = None, overrides: Overrides = None, json: Json = False) -> None:
    """The models that the settings use, and which of them are in the store."""
    context = make_context(config, overrides, json)
    stored = {m.name: m for m in ModelStore().list()}
    pins = read_pins()
    rows = [
        {
            "use": use,
            "name": name,
            "stored": name in stored,
            "licence": pins[name].licence if name in pins else "",
        }
        for use, name in used_models(context.settings).items()
    ]
    if json:
        context.print_json(rows)
        return
    table = Table("use", "model", "stored", "licence")
    for row in rows:
        stored_word = "yes" if row["stored"] else "no"
        table.add_row(str(row["use"]), str(row["name"]), stored_word, str(row["licence"]))
    context.out.print(table)


@models.command("pull")
def pull_models(
    names: Annotated[
        list[str] | None, typer.Argument(help="Models by name; none: all that the settings use.")
    ] = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Fetch models into the store, checking the checksums that are pinned."""
    context = make_context(config, overrides, json)
    wanted = names or sorted(set(used_models(context.settings).values()))
    pulled: dict[str, Path] = {}
    while wanted:
        name = wanted.pop(0)
        context.log.print(f"pulling {name}")
        pulled[name] = path = ModelStore().resolve(name)
        if is_adapter(path) and base_of(path) not in {*wanted, *pulled}:
            wanted.append(base_of(path))
    if json:
        context.print_json([{"name": name, "path": str(path)} for name, path in pulled.items()])
        return
    for name, path in pulled.items():
        context.out.print(f"{name} -> {path}", soft_wrap=True)


def used_models(settings: Settings) -> dict[str, str]:
    """The models that the settings name, by what they are used for."""
    llm = settings.llm.model if settings.llm.kind == "vllm" else ""
    uses = {
        "encoder": settings.encoder.model,
        "encoder's adapter": settings.encoder.adapter,
        "llm": llm,
        "concepts": settings.vocabulary.concepts,
        "recogniser": settings.recogniser.model,
        "recogniser's adapter": settings.recogniser.adapter,
        "reranker": settings.reranker.model,
        "reranker's adapter": settings.reranker.adapter,
        "reader": settings.reader.model,
        "reader's adapter": settings.reader.adapter,
        "support": settings.support.model,
        "support's adapter": settings.support.adapter,
    }
    return {use: name for use, name in uses.items() if name}


@app.command("version")
def print_version() -> None:
    """The version of CiteRay."""
    print(version("citeray"))


def main() -> None:
    """Run the command line; a CiteRayError is one line on standard error."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    keep_to_this_machine()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A file may hold half a surrogate pair, which is no UTF-8; its escape is JSON's own.
            stream.reconfigure(errors="backslashreplace")
    for point in sorted(entry_points(group="citeray.commands")):
        point.load()(app)
    try:
        app()
    except CiteRayError as error:
        Console(stderr=True, highlight=False).print(
            f"citeray: {one_line(str(error))}", style="red", soft_wrap=True, markup=False
        )
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
