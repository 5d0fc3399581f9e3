"""Access to the saved-data database for the `feedback` and `watch` commands."""

from __future__ import annotations

from typing import Annotated

import typer

from cluster.errors import InputError
from commands.context import Context
from serve.saved.stores import Saved, open_saved

OwnerOption = Annotated[
    str | None,
    typer.Option(help="Show only data of the API key with this name (default: all)."),
]


def open_stores(context: Context) -> Saved:
    """Open the stores of the settings; raise InputError if serve.saved.url is empty."""
    saved = open_saved(context.settings)
    if saved is None:
        raise InputError("serve.saved.url: empty, so nothing is stored; name a database")
    return saved
