"""Parse untrusted JSON strictly, and iterate over nested values without recursion."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any

from cluster.errors import InputError

MAX_DEPTH = 100


def contained(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of the lists and the values of the mappings in `values`."""
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list | tuple | set):
            yield from value


def parse_json(text: str, where: str) -> Any:
    """Return the value of `text`. Unlike Python's parser, reject NaN and Infinity.

    Raises InputError that names `where` if the text is not JSON, has a number too large for a
    float, or is nested deeper than `MAX_DEPTH` levels.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except ValueError as error:
        raise InputError(f"{where}: not JSON: {error}") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deep (more than {MAX_DEPTH} levels)") from None
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [each for each in contained(level) if isinstance(each, dict | list)]
        if not level:
            return value
    raise InputError(f"{where}: nested too deep (more than {MAX_DEPTH} levels)")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a valid JSON number")
