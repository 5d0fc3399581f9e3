"""The file that --output names."""

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
    """Write the file whole or not at all, or to standard output where there is none.

    Raises InputError where the file cannot be written.
    """
    if path is None:
        print(text, end="", flush=True)
        return
    try:
        # Half a surrogate pair, which a file's name may hold, is no UTF-8.
        write_atomically(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror or error}; name another file"
        ) from None
