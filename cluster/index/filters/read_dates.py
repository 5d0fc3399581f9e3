"""Read dates of publication as people type them, as filters."""

from __future__ import annotations

import calendar
import re
from datetime import date
from typing import Any

from cluster.errors import InputError

DATE = r"\d{4}(?:/\d{1,2}){0,2}"
_OPEN_YEAR = 3000


def read_dates(value: str, where: str) -> dict[str, Any]:
    """Return a date or a range such as "2015:2024/05" as fields of Filters.

    Raises InputError, which begins with `where`, if `value` is neither, or if the range does not
    begin on 1 January or ends before it begins.
    """
    begin, colon, end = (part.strip() for part in value.partition(":"))
    try:
        first = _day(begin, last=False)
        last = _day(end or (str(_OPEN_YEAR) if colon else begin), last=True)
    except ValueError as error:
        raise InputError(f"{where}: not a date; give years as in 2015:2024[dp]") from error
    if (first.month, first.day) != (1, 1):
        raise InputError(
            f"{where}: a range must begin with a year; write it as in 2020:2024/05/31[dp]"
        )
    if first > last:
        raise InputError(f"{where}: {begin} is after {end}; swap the two dates")
    found: dict[str, Any] = {"year_from": first.year}
    if last.year >= _OPEN_YEAR:
        return found
    if (last.month, last.day) == (12, 31):
        return {**found, "year_to": last.year}
    return {**found, "until": last.isoformat()}


def _day(text: str, *, last: bool) -> date:
    """Return the first or the last day of a year, a month or a day. Raises ValueError."""
    if not re.fullmatch(DATE, text):
        raise ValueError(text)
    year, month, day = (*map(int, text.split("/")), 0, 0)[:3]
    month = month or (12 if last else 1)
    return date(year, month, day or (calendar.monthrange(year, month)[1] if last else 1))
