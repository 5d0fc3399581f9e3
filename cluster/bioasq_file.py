"""The frame of every BioASQ file: `{"questions": [...]}` in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cluster.errors import InputError


def read_rows(path: Path) -> list[Any]:
    """What stands under `questions`, unchecked.

    Raises InputError naming the file when it cannot be read or has not that form.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON in UTF-8: {error}") from None
    rows = content.get("questions") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise InputError(f'{path}: not BioASQ\'s form; it must be {{"questions": [...]}}')
    return rows
