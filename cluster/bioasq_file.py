"""The frame of every BioASQ file: `{"questions": [...]}` in JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.parse_json import parse_json


def read_rows(path: Path) -> list[Any]:
    """What stands under `questions`, unchecked.

    Raises InputError naming the file when it cannot be read or has not that form.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path}: not in UTF-8: {error}; save it as UTF-8") from None
    content = parse_json(text, str(path))
    rows = content.get("questions") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise InputError(f'{path}: not BioASQ\'s form; it must be {{"questions": [...]}}')
    return rows
