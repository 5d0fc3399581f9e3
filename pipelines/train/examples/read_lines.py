"""JSON lines, each with its number for whoever must name it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.parse_json import parse_json


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of `path`, one a line, from line 1; blank lines are passed over.

    Raises InputError for a file that cannot be read, or a line that is no JSON object.
    """
    try:
        # Not splitlines: JSON may hold line separators of other kinds within its strings.
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); name a file of JSON lines") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = parse_json(line, f"{path}, line {number}")
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}: not a JSON object, but {line[:40]!r}")
        yield number, row
