"""`citeray models`: list and download the models that the settings name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cluster.models.adapters import base_of, is_adapter, model_folder
from cluster.models.store import ModelStore, read_pins
from cluster.settings.used_models import used_models, used_settings
from commands.context import Config, Json, Overrides, make_context

models = typer.Typer(
    help="List and download the models that the settings name.",
    no_args_is_help=True,
    add_completion=False,
)


SHIPPED = "citeray:"


@models.command("list")
def list_models(config: Config = None, overrides: Overrides = None, json: Json = False) -> None:
    """List the models of the settings, with their location and licence.

    A model that ships with CiteRay is an adapter, which also needs its base model.
    """
    context = make_context(config, overrides, json)
    stored = {model.name for model in ModelStore().list()}
    pins = read_pins()
    rows = [
        {
            "use": use,
            "name": name,
            "stored": name in stored,
            "licence": pins[name].licence if name in pins else _licence_of_shipped(name),
            "ships": name.startswith(SHIPPED),
        }
        for use, name in _with_bases(used_models(context.settings)).items()
    ]
    if json:
        context.print_json(rows)
        return
    for row in rows:
        downloaded = "downloaded" if row["stored"] else "not downloaded yet"
        source = "ships with CiteRay" if row["ships"] else downloaded
        licence = row["licence"] or "unknown, see its source"
        context.out.print(f"{row['use']}: {source}, licence: {licence}", highlight=False)
        # Names are not wrapped, so that they can be copied.
        context.out.print(f"    {row['name']}", style="dim", soft_wrap=True, highlight=False)
    if not all(row["stored"] or row["ships"] for row in rows):
        context.log.print("`citeray models pull` downloads the missing models")


def _licence_of_shipped(name: str) -> str:
    """Return CiteRay's own licence for an adapter that ships with it, and "" for other models."""
    return "Apache-2.0" if name.startswith(SHIPPED) else ""


def _with_bases(used: Mapping[str, str]) -> dict[str, str]:
    """Return the models by use, with the base model of each adapter that ships with CiteRay."""
    uses: dict[str, str] = {}
    for use, name in used.items():
        uses[use] = name
        while name.startswith(SHIPPED):
            name = base_of(ModelStore().resolve(name))
            use = f"{use}'s base"
            uses[use] = name
    return uses


@models.command("pull")
def pull_models(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of models (default: all that the settings use)."),
    ] = None,
    language_models: Annotated[
        bool | None,
        typer.Option(help="Download only the language models, or only the other models."),
    ] = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Download models into the store and verify their pinned checksums.

    Without names, also merges the adapters of the settings, so that the store can be read-only.
    """
    context = make_context(config, overrides, json)
    used = used_models(context.settings, language_models=language_models)
    wanted = names or sorted(set(used.values()))
    pulled: dict[str, Path] = {}
    while wanted:
        name = wanted.pop(0)
        context.log.print(f"pulling {name}")
        pulled[name] = path = ModelStore().resolve(name)
        if is_adapter(path) and base_of(path) not in {*wanted, *pulled}:
            wanted.append(base_of(path))
    if not names:
        for named in used_settings(context.settings).values():
            model_folder(named)
    if json:
        context.print_json([{"name": name, "path": str(path)} for name, path in pulled.items()])
        return
    for name, path in pulled.items():
        context.out.print(f"{name} -> {path}", soft_wrap=True)
