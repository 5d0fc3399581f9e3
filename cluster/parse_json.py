"""Parse untrusted JSON strictly."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from cluster.contained import contained
from cluster.errors import InputError

MAX_DEPTH = 100


def parse_json(text: str, place: str) -> Any:
    """Return the value of `text`. Unlike Python's parser, reject NaN and Infinity.

    Raises InputError that names `place` if the text is not JSON, has a number too large for a
    float, or is nested deeper than `MAX_DEPTH`, which could not be written again.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except ValueError as error:
        raise InputError(f"{place}: not JSON: {error}") from None
    except RecursionError:
        raise InputError(f"{place}: nested too deep; no file of this form is") from None
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [each for each in contained(level) if isinstance(each, dict | list)]
        if not level:
            return value
    raise InputError(f"{place}: nested too deep; no file of this form is")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")
