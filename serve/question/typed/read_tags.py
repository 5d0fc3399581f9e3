"""Convert the field tags of a question to filters, or explain what filters cannot express."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime
from typing import Any

from cluster.errors import InputError, cut
from cluster.index.filters.filters import FLAGS, VALUES, Filters
from serve.question.typed.field_names import LANGUAGES, publication_type
from serve.question.typed.find_operators import is_prose_in_capitals, operators_in
from serve.question.typed.parse_tags import Tagged, parse_tags

RANKED = (
    "articles are ranked by the words and need not have them all: {} between words is not applied"
)
WORDS = (
    "[tiab] and other text fields search titles and abstracts, as all words do; none is required"
)
CAPITALS = "NOT was read as an ordinary word, because the question is in capitals"
YEARS = "dates begin with a year, so the last years ({}) were read as {} and later"
NARROW = "MeSH headings are matched exactly, without the narrower ones below them"
_COLUMNS = {"au": "authors", "ta": "journals", "mh": "mesh", "pt": "publication_types"}
_COLUMNS["la"] = "languages"
_FIRST_YEAR = 1000
_OPEN_YEAR = 3000
_FLAG_FILTERS = {
    "humans": "humans",
    "human": "humans",
    "hasabstract": "has_abstract",
    "fha": "has_abstract",
}
_LAST_YEARS = re.compile(r"(?:y_|last )(\d{1,3})(?: years?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReadTags:
    """The remaining words, the filters, and notes on how both were interpreted."""

    words: str
    filters: Filters
    notes: tuple[str, ...]


def read_tags(body: str, headings: Mapping[str, str], today: date | None = None) -> ReadTags | None:
    """Parse the field tags and operators of `body`; return None if it has none.

    `headings`: see `parse_tags`. `today` is the reference date for "the last 5 years" (default: the
    current UTC date). Raises InputError, which names the part and the fix.
    """
    parts = parse_tags(body, headings)
    if parts is None:
        unread = is_prose_in_capitals(body) and any(
            body.startswith("NOT", at) for at in operators_in(body)
        )
        return ReadTags(body, Filters(), (CAPITALS,)) if unread else None
    reader = _Reader(headings, today or datetime.now(UTC).date())
    for group in parts.tagged:
        reader.add(group)
    words = " ".join(part for part in (parts.words, *reader.words) if part)
    # If there are only headings, search for their words.
    words = words or " ".join(reader.topics)
    if not any(c.isalnum() for c in words):
        raise InputError(
            "question: only field tags; add words to search for, as in "
            "metformin AND Smith J[au] AND 2020:2024[dp]"
        )
    ranked = (RANKED.format(operator) for operator in parts.operators)
    return ReadTags(words, reader.filters(), (*ranked, *reader.notes))


class _Reader:
    """Collects the groups of one question."""

    def __init__(self, headings: Mapping[str, str], today: date) -> None:
        self._headings = headings
        self._today = today
        self._lists: dict[str, list[tuple[str, ...]]] = {}
        self._single: dict[str, Any] = {}
        self.words: list[str] = []
        self.topics: list[str] = []
        # A dictionary, so that each note is kept once, in order.
        self.notes: dict[str, None] = {}

    def add(self, group: tuple[Tagged, ...]) -> None:
        """Add alternative values of one field, joined by OR."""
        kind, values = group[0].field, tuple(tag.value for tag in group)
        if kind == "text":
            self.words += values
            self.notes[WORDS] = None
        elif kind == "dp":
            self._date(values)
        elif kind == "filter":
            self._filter(values)
        elif kind == "mh" and [value.casefold() for value in values] == ["humans"]:
            self._single["humans"] = True
        elif kind in ("pmid", "doi", "pmc"):
            raise InputError(
                f"question, {cut(values[0])}[{kind}]: PMIDs, PMCIDs and DOIs with other words or "
                "tags cannot be searched; give them alone"
            )
        else:
            self._lists.setdefault(_COLUMNS[kind], []).append(
                tuple(self._value(kind, value) for value in values)
            )

    def filters(self) -> Filters:
        found: dict[str, Any] = {}
        all_of = []
        for name, groups in self._lists.items():
            if len(groups) > 1 and any(len(group) > 1 for group in groups):
                raise InputError(
                    f"question: {name.replace('_', ' ')} joined by both AND and OR cannot be "
                    "applied; use one of them"
                )
            found[name] = tuple(value for group in groups for value in group)
            all_of += [name] if len(groups) > 1 else []
        return Filters(**self._single, **found, all_of=tuple(all_of))

    def _value(self, kind: str, value: str) -> str:
        if kind == "mh":
            self.notes[NARROW] = None
            self.topics.append(value)
            return self._heading(value)
        if kind == "pt":
            known = publication_type(value)
            if known is None:
                raise InputError(
                    f"question, {cut(value)}[pt]: not a publication type of PubMed; give one such "
                    "as Review or Randomized Controlled Trial"
                )
            return known
        if kind == "la":
            return _language(value)
        return value

    def _heading(self, value: str) -> str:
        ui = self._headings.get(value)
        if "/" in value and ui is None:
            raise InputError(
                f"question, {cut(value)}[mh]: filtering by subheading is not supported; give the "
                "heading alone"
            )
        if ui is None:
            raise InputError(
                f"question, {cut(value)}[mh]: not a MeSH heading that this index knows; leave out "
                "[mh] to search for the words"
            )
        return ui

    def _filter(self, values: tuple[str, ...]) -> None:
        kinds = {_filter_kind(value) for value in values}
        if "" in kinds:
            [value, *_] = [value for value in values if not _filter_kind(value)]
            raise InputError(
                f"question, {cut(value)}[filter]: not a filter here; the supported ones are "
                "humans, hasabstract, y_1, y_5 and y_10, languages and publication types"
            )
        if len(values) > 1 and kinds not in ({"pt"}, {"la"}):
            raise InputError(
                f"question, {cut(values[0])}[filter]: OR between different filters cannot be "
                "applied; use it between publication types, or between languages"
            )
        [kind] = kinds
        if kind == "flag":
            self._single[_FLAG_FILTERS[values[0].casefold()]] = True
        elif kind == "dp":
            self._date(values)
        else:
            self.add(tuple(Tagged("pt" if kind == "pt" else "la", one) for one in values))

    def _date(self, values: tuple[str, ...]) -> None:
        if len(values) > 1 or {"year_from", "year_to", "until"} & self._single.keys():
            raise InputError(
                "question: several dates of publication cannot be applied; give one range, as in "
                "2015:2024[dp]"
            )
        if last := _LAST_YEARS.fullmatch(values[0].strip('"')):
            first = max(self._today.year - int(last[1]), _FIRST_YEAR)
            self._single["year_from"] = first
            self.notes[YEARS.format(int(last[1]), first)] = None
            return
        self._single.update(read_dates(values[0]))


def _filter_kind(value: str) -> str:
    """Return what a value of [filter] sets: "flag", "dp", "pt" or "la"; "" for an unknown one."""
    folded = value.casefold()
    if folded in _FLAG_FILTERS:
        return "flag"
    if _LAST_YEARS.fullmatch(folded):
        return "dp"
    return "pt" if publication_type(folded) else "la" if folded in LANGUAGES else ""


def _language(value: str) -> str:
    folded = value.casefold()
    code = LANGUAGES.get(folded, folded)
    if code not in LANGUAGES.values() and not re.fullmatch("[a-z]{3}", code):
        raise InputError(
            f"question, {cut(value)}[la]: not a language of PubMed; give one such as english or eng"
        )
    return code


def read_dates(value: str) -> dict[str, int | str]:
    """Return a date or a range such as "2015:2024/05" as fields of Filters.

    Raises InputError if `value` is neither, or if the range does not begin on 1 January.
    """
    begin, colon, end = (part.strip() for part in value.partition(":"))
    try:
        first, last = _date(begin), _date(end if colon else begin)
    except ValueError as error:
        raise InputError(
            f"question, {cut(value)}[dp]: not a date; give years as in 2015:2024[dp]"
        ) from error
    if first is None or first[1:] not in ((), (1,), (1, 1)) or (not colon and len(first) > 1):
        raise InputError(
            f"question, {cut(value)}[dp]: a range must begin with a year; write it as in "
            "2020:2024/05/31[dp]"
        )
    found: dict[str, int | str] = {"year_from": first[0]}
    if last is None or last[0] >= _OPEN_YEAR:
        return found
    year, month, day = (*last, 12, 31)[:3] if len(last) == 1 else (*last, 0)[:3]
    if (month, day) in ((12, 31), (12, 0)):
        return {**found, "year_to": year}
    day = day or calendar.monthrange(year, month)[1]
    return {**found, "until": f"{year:04d}-{month:02d}-{day:02d}"}


def _date(text: str) -> tuple[int, ...] | None:
    """Return (year,), (year, month) or (year, month, day); None for "". Raises ValueError."""
    if not text:
        return None
    found = tuple(int(part) for part in text.split("/"))
    year, month, day = (*found, 1, 1)[:3]
    if len(text.split("/")[0]) != 4 or not 1 <= month <= 12:
        raise ValueError(text)
    if not 1 <= day <= calendar.monthrange(min(year, 9998), month)[1]:
        raise ValueError(text)
    return found


def joined_filters(given: Filters, read: Filters) -> Filters:
    """Combine two filters; raises InputError if they set one field to different values.

    Ranges of years are intersected.
    """
    values: dict[str, Any] = {}
    for one in fields(Filters):
        here, there = getattr(given, one.name), getattr(read, one.name)
        if one.name == "all_of":
            values[one.name] = (*here, *there)
        elif here == one.default or there == one.default or here == there:
            values[one.name] = here if there == one.default else there
        elif one.name == "year_from":
            values[one.name] = max(here, there)
        elif one.name in ("year_to", "until"):
            values[one.name] = min(here, there)
        else:
            what = "lists" if one.name in VALUES else "says" if one.name in FLAGS else "sets"
            raise InputError(
                f"filters.{one.name}: the question {what} another value by a field tag; give it in "
                "one place"
            )
    return replace(given, **values)
