"""Search filters: conditions that a citation must meet to be found."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import TypedDict

from cluster.errors import InputError, cut
from cluster.index.filters.match_authors import names_author, plain
from cluster.records import HUMANS_UI, Citation
from cluster.study_design.design_classifier import classify_design
from cluster.study_design.designs import DESIGNS, design_named

_MESH_UI = re.compile(r"D\d{6,9}", re.ASCII)
_EARLIEST, _LATEST = 1000, 2999
# Maximum length of a list, to bound the work of a request; PubMed has about 200 publication types.
MOST_VALUES = 1000


def fold(value: str) -> str:
    """Return the form for storing and comparing values: case-folded, with single spaces."""
    return " ".join(value.casefold().split())


@dataclass(frozen=True, slots=True)
class Flag:
    """A filter that is true or false: its bit in an index, its words on the page, and its meaning.

    On the page, `label` names the field of the form; `if_true` and `if_false` describe the
    citations that are found. `test` returns whether the filter is true for a citation.
    """

    bit: int
    label: str
    if_true: str
    if_false: str
    test: Callable[[Citation], bool]


def _indexed_as_human(citation: Citation) -> bool:
    """Return whether NLM indexed the article as about people; False for unindexed articles."""
    return any(heading.ui == HUMANS_UI for heading in citation.mesh)


def _with_abstract(citation: Citation) -> bool:
    return any(section.text.strip() for section in citation.sections)


# The API, the command line, the page and the index take the flags from here, in the page's order.
FLAGS = {
    "humans": Flag(2, "People", "in humans", "not indexed as human", _indexed_as_human),
    "has_abstract": Flag(4, "Abstract", "with an abstract", "without an abstract", _with_abstract),
    "retracted": Flag(1, "Retracted", "retracted", "not retracted", lambda c: c.retracted),
}


class FlagOptions(TypedDict, total=False):
    """FLAGS as keyword arguments."""

    humans: bool
    has_abstract: bool
    retracted: bool


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that a citation must meet to be found; the default admits every citation.

    Every field that is set must match. Within a list, one matching value is enough, and case is
    ignored. `year_from` and `year_to` are inclusive; a citation without a year does not pass
    them. `journals` are full titles or ISO abbreviations, `languages` are codes such as "eng",
    `mesh` are descriptor UIs such as "D006801". `humans` tests for the descriptor Humans. A flag
    of None admits both kinds. `until` is a day such as "2024-05-31": citations that may have been
    published later are excluded, judged by the last day of their month or, if unknown, year.
    `authors` are names such as "Smith J" or "John Smith"; see `names_author`. `design` are study
    designs such as "randomised_trial", determined as in every answer (`cluster.study_design`).
    `all_of` names the lists of which every value must match.

    Raises InputError, which names the field and the fix, for invalid values.
    """

    year_from: int | None = None
    year_to: int | None = None
    journals: tuple[str, ...] = ()
    publication_types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    mesh: tuple[str, ...] = ()
    humans: bool | None = None
    retracted: bool | None = None
    has_abstract: bool | None = None
    until: str | None = None
    authors: tuple[str, ...] = ()
    design: tuple[str, ...] = ()
    all_of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("year_from", "year_to"):
            _check_year(name, getattr(self, name))
        if self.year_from and self.year_to and self.year_from > self.year_to:
            raise InputError(
                f"filters.year_from: {self.year_from} is after filters.year_to {self.year_to}; "
                "swap the two years or leave one out"
            )
        for name in (*VALUES, "all_of"):
            # Sort the values, so that equivalent filters are equal and share one cache entry.
            object.__setattr__(self, name, _checked_values(name, getattr(self, name)))
        # Different spellings may name the same design, so remove duplicates and sort again.
        named = {_checked_design(value) for value in self.design}
        object.__setattr__(self, "design", tuple(sorted(named)))
        for ui in self.mesh:
            if not _MESH_UI.fullmatch(ui.upper()):
                raise InputError(
                    f"filters.mesh: {cut(ui)!r} is not the UI of a MeSH descriptor; give one such "
                    "as D006801 (Humans)"
                )
        _check_authors_and_all_of(self.authors, self.all_of)
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool | None):
                raise InputError(f"filters.{name}: give true or false, or leave it out")
        if self.until is not None:
            as_day(self.until, "filters.until")

    def __bool__(self) -> bool:
        """Return whether any condition is set."""
        return any(getattr(self, f.name) != f.default for f in fields(self))

    @property
    def first_day(self) -> date | None:
        """The first day that passes, or None without a bound."""
        return date(self.year_from, 1, 1) if self.year_from else None

    @property
    def last_day(self) -> date | None:
        """The last day that passes, or None without a bound."""
        ends = [date(self.year_to, 12, 31)] if self.year_to else []
        ends += [date.fromisoformat(self.until)] if self.until else []
        return min(ends, default=None)

    def no_later_than(self, day: str) -> Filters:
        """Return these filters with `until` no later than `day`; "" changes nothing."""
        return replace(self, until=min(day, self.until or day)) if day else self

    def admits(self, citation: Citation) -> bool:
        """Return whether the citation passes; unlike the columns, this also compares months."""
        first, last = self.first_day, self.last_day
        if (first or last) and citation.year is None:
            return False
        if citation.year is not None and (
            (first and citation.year < first.year)
            or (last and last_day_of(citation.year, citation.month) > last)
        ):
            return False
        wanted = ((flag, getattr(self, name)) for name, flag in FLAGS.items())
        if any(value is not None and flag.test(citation) != value for flag, value in wanted):
            return False
        held = {
            "journals": (citation.journal, citation.journal_abbreviation),
            "publication_types": citation.publication_types,
            "languages": citation.languages,
            "mesh": tuple(heading.ui for heading in citation.mesh),
            # Determined only if it is filtered, to save time.
            "design": (classify_design(citation).name,) if self.design else (),
        }
        met = all(_share(wanted, held[name]) for name, wanted in self.clauses())
        return met and all(
            any(names_author(plain(name), author) for name in some for author in citation.authors)
            for some in self.author_clauses()
        )

    def clauses(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield each filtered list column with alternative values, one of which must match."""
        for name in LISTS:
            for some in self._groups(name):
                yield name, some

    def author_clauses(self) -> list[tuple[str, ...]]:
        """Return groups of author names; in each group, one name must match."""
        return self._groups("authors")

    def _groups(self, name: str) -> list[tuple[str, ...]]:
        values: tuple[str, ...] = getattr(self, name)
        if name in self.all_of:
            return [(value,) for value in values]
        return [values] if values else []


LISTS = ("journals", "publication_types", "languages", "mesh", "design")
# Authors are looked up in the records, because the index has no column of authors.
VALUES = (*LISTS, "authors")
# A citation has one design.
ALL_OF = tuple(name for name in VALUES if name != "design")


def as_day(value: object, where: str) -> date:
    """Return `value` as a day. Raises InputError naming `where` if it is not a day.

    Days are compared as strings, so other ISO forms such as 20240531 are rejected.
    """
    with suppress(ValueError):
        day = date.fromisoformat(str(value))
        if day.isoformat() == value:
            return day
    raise InputError(f"{where}: {cut(repr(value))} is not a day; give one such as 2024-05-31")


def last_day_of(year: int, month: int | None) -> date:
    """Return the last day of the month, or of the year if the month is unknown."""
    month = month or 12
    return date(year, month, calendar.monthrange(year, month)[1])


def _share(wanted: tuple[str, ...], values: Iterable[str]) -> bool:
    return not wanted or any(fold(value) in wanted for value in values)


def _check_year(name: str, year: object) -> None:
    if year is None:
        return
    if not isinstance(year, int) or isinstance(year, bool) or not _EARLIEST <= year <= _LATEST:
        raise InputError(
            f"filters.{name}: {cut(repr(year))} is not a year; give a number from {_EARLIEST} to "
            f"{_LATEST}"
        )


def _checked_values(name: str, values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, tuple | list):
        raise InputError(
            f"filters.{name}: {cut(repr(values))} is not a list; give a list of strings"
        )
    for value in values:
        if not isinstance(value, str) or not value.strip():
            raise InputError(
                f"filters.{name}: {cut(repr(value))} is not a value; give non-empty strings"
            )
    if len(values) > MOST_VALUES:
        raise InputError(
            f"filters.{name}: {len(values):,} values; give at most {MOST_VALUES:,} at a time"
        )
    return tuple(sorted({fold(value) for value in values}))


def _checked_design(value: str) -> str:
    name = design_named(value)
    if name not in DESIGNS:
        raise InputError(
            f"filters.design: {cut(value)!r} is not a study design; there are: {', '.join(DESIGNS)}"
        )
    return name


def _check_authors_and_all_of(authors: Iterable[str], all_of: Iterable[str]) -> None:
    for name in authors:
        if not plain(name):
            raise InputError(
                f"filters.authors: {cut(name)!r} is not a name; give one such as Smith J"
            )
    for name in all_of:
        if name not in ALL_OF:
            raise InputError(
                f"filters.all_of: {cut(name)!r} is not a list; there are: {', '.join(ALL_OF)}"
            )


NO_FILTERS = Filters()
