"""Write results to the file of --output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import InputError
from cluster.storage.whole_files import write_atomically

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The file to write; standard output if not given."),
]


def write_output(path: Path | None, text: str) -> None:
    """Write `text` to the file atomically, or to standard output if `path` is None.

    Raises InputError if the file cannot be written.
    """
    if path is None:
        print(text, end="", flush=True)
        return
    try:
        # A file name may hold half a surrogate pair, which UTF-8 cannot encode.
        write_atomically(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror or error}; name another file"
        ) from None
