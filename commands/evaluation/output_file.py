"""Write results to the file of --output."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import InputError
from cluster.storage.whole_files import published_atomically

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
    # A file name may contain an unpaired surrogate, which UTF-8 cannot encode.
    write_parts(path, [text.encode(errors="backslashreplace")])


def write_parts(path: Path, parts: Iterable[bytes]) -> None:
    """Write `parts` to the file atomically. Raises InputError if it cannot be written."""
    try:
        with published_atomically(path, uuid.uuid4().hex) as aside, aside.open("wb") as file:
            file.writelines(parts)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror or error}; name another file"
        ) from None
