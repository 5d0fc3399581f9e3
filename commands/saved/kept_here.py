"""What the commands on kept things share: the database of the settings, opened here."""

from __future__ import annotations

from typing import Annotated

import typer

from cluster.errors import InputError
from commands.context import Context
from serve.saved.keep import Saved, open_saved

OwnerOption = Annotated[
    str | None,
    typer.Option(help="Only of this API key's name; of all keys if not given."),
]


def kept_here(context: Context) -> Saved:
    """The stores of the settings; raises InputError where they keep nothing."""
    saved = open_saved(context.settings)
    if saved is None:
        raise InputError("serve.saved.url: empty, so nothing is kept; name a database")
    return saved
