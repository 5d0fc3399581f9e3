"""Iterate over nested JSON or YAML values level by level, without recursion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def contained(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of the lists and the values of the mappings in `values`."""
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list | tuple | set):
            yield from value
