"""What a value of JSON or YAML holds, level by level and without recursion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def contained(values: Iterable[Any]) -> Iterator[Any]:
    """What the lists and maps among `values` hold; of a map its values."""
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list | tuple | set):
            yield from value
