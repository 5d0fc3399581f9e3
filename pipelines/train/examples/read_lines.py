"""Read JSON lines with their line numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.parse_json import parse_json


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of `path` with their line numbers from 1; blank lines are skipped.

    Raises InputError for a file that cannot be read, or a line that is not a JSON object.
    """
    try:
        # Not splitlines, because JSON strings may contain other line separators.
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
