"""The frame of every BioASQ file: `{"questions": [...]}` in JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.parse_json import parse_json
from cluster.read_given import read_given


def read_rows(path: Path) -> list[Any]:
    """What stands under `questions`, unchecked.

    Raises InputError naming the file when it cannot be read or has not that form.
    """
    content = parse_json(read_given(path), str(path))
    rows = content.get("questions") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise InputError(f'{path}: not BioASQ\'s form; it must be {{"questions": [...]}}')
    return rows
