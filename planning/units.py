"""Parse and format quantities: 38M citations, 2s, 500ms, 64GB."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date

from cluster.errors import InputError

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([A-Za-z]*)\s*")

COUNTS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
BYTES = {
    **{"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
    **{"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    **{"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40},
}


def parse_count(text: str, option: str) -> int:
    """Parse a whole number above 0, such as 38M; raise InputError, naming `option`."""
    value = _parse(text, option, COUNTS, "a number such as 38M, 300k or 1200000")
    if value != int(value):
        raise InputError(f"{option} {text}: {value:g} is not a whole number; give one such as 300k")
    return int(value)


def parse_rate(text: str, option: str) -> float:
    """Parse a number above 0, such as 50 or 0.5."""
    return _parse(text, option, COUNTS, "a number such as 50 or 0.5")


def parse_seconds(text: str, option: str) -> float:
    """Return seconds above 0, from 2s, 500ms, 10min or 1h."""
    return _parse(text, option, SECONDS, "a time with its unit such as 2s or 500ms")


def parse_bytes(text: str, option: str) -> int:
    """Return bytes above 0, from 64GB (powers of 1000), 64GiB or 64Gi (powers of 1024)."""
    return round(_parse(text, option, BYTES, "a size with its unit such as 64GB or 64Gi"))


def parse_day(text: str, option: str) -> str:
    """Check that `text` is a day such as 2026-11-26 or empty; raise InputError otherwise."""
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError as error:
        raise InputError(f"{option} {text}: expected a day such as 2026-11-26") from error


def _parse(text: str, option: str, units: Mapping[str, float], wanted: str) -> float:
    found = _NUMBER.fullmatch(text)
    unit = found[2] if found else ""
    known = {name.lower(): factor for name, factor in units.items()}
    if found is None or unit.lower() not in known:
        names = ", ".join(name for name in units if name)
        raise InputError(f"{option} {text}: expected {wanted}; the units are {names}")
    value = float(found[1]) * known[unit.lower()]
    if not 0 < value < math.inf:
        raise InputError(f"{option} {text}: it must be above 0; expected {wanted}")
    return value


def format_bytes(value: float) -> str:
    """Format bytes with a decimal unit and about 3 digits: "64 GB"."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return (
                f"{value / size:,.3g} {unit}"
                if value < 999 * size
                else f"{value / size:,.0f} {unit}"
            )
    return f"{value:,.0f} B"


def format_seconds(value: float) -> str:
    """Format a duration in a suitable unit, from ms to days: "12.1 h"."""
    if value >= 2 * 86400:
        return f"{value / 86400:,.1f} days"
    if value >= 2 * 3600:
        return f"{value / 3600:,.1f} h"
    if value >= 120:
        return f"{value / 60:,.1f} min"
    return f"{value:,.3g} s" if value >= 1 else f"{value * 1000:,.3g} ms"


def gibibytes(value: float) -> str:
    """Format bytes as a Kubernetes quantity, rounded up, such as 64Gi."""
    return f"{math.ceil(value / 2**30)}Gi"
