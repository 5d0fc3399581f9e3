"""Read the outer structure of BioASQ files: `{"questions": [...]}` in JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.parse_json import parse_json
from cluster.read_given import read_given


def read_rows(path: Path) -> list[Any]:
    """Return the list under `questions`; its items are not checked.

    Raises InputError that names the file if it cannot be read or has another structure.
    """
    content = parse_json(read_given(path), str(path))
    rows = content.get("questions") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise InputError(f'{path}: not in BioASQ\'s format; it must be {{"questions": [...]}}')
    return rows
