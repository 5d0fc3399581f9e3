"""Access to the saved-data database for the `feedback` and `watch` commands."""

from __future__ import annotations

from typing import Annotated

import typer

from cluster.errors import InputError
from commands.context import Context
from serve.client.open_client import check_same_store
from serve.saved.stores import Saved, open_saved

OwnerOption = Annotated[
    str | None,
    typer.Option(help="Show only data of the API key with this name (default: all)."),
]


def open_stores(context: Context) -> Saved:
    """Open the stores of the settings.

    Raises InputError if serve.saved.url is empty, or if a running endpoint uses another database.
    """
    saved = open_saved(context.settings)
    if saved is None:
        raise InputError("serve.saved.url: empty, so nothing is stored; name a database")
    check_same_store(context.settings, "serve.saved.url")
    return saved
