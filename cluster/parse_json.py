"""JSON from outside, refused in one sentence where it is none."""

from __future__ import annotations

import json
from typing import Any

from cluster.errors import InputError


def parse_json(text: str, place: str) -> Any:
    """The value that `text` holds. Stricter than Python's: NaN and Infinity are no JSON.

    Raises InputError naming `place` for what is not JSON or is nested too deep to be read.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise InputError(f"{place}: not JSON: {error}") from None
    except RecursionError:
        raise InputError(f"{place}: nested too deep; no file of this form is") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")
