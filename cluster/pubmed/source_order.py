"""Order of source files, and gaps in their numbers.

NLM numbers its files, and this order is official: a file that arrives late is sorted by its number.
Files with other names have no official order, and count as newer than all files that were applied
before them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from cluster.errors import InputError

# NLM's names, and others of that form: prefix, year of the baseline, number, suffix.
_NUMBERED = re.compile(r"([A-Za-z_-]+)(\d\d)n(\d{4})(\.xml(?:\.gz)?)")
# NLM's names: pubmed26n0001.xml.gz is a file of the baseline of 2026 or its updates.
_NLM_NAME = re.compile(r"pubmed(\d\d)n\d{4}")


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that compares numbers in names, so that n10 follows n9."""
    parts = re.split(r"(\d+)", name)
    return tuple((int(p), "") if p.isdigit() else (-1, p) for p in parts)


Place = tuple[tuple[str, ...], tuple[int, ...]]
"""A series of names, and the position of a name in it."""


def official_place(name: str) -> Place | None:
    """Return the series and number in a name of NLM's form; None for other names."""
    match = _NUMBERED.fullmatch(name)
    return ((match[1], match[2]), (int(match[3]),)) if match else None


def numbered_place(name: str) -> Place | None:
    """Return the text and the numbers of a name, to order names that differ only in numbers."""
    parts = re.split(r"(\d+)", name.removesuffix(".gz"))
    return (tuple(parts[::2]), tuple(map(int, parts[1::2]))) if len(parts) > 1 else None


def apply_order(
    names: Iterable[str], place_of: Callable[[str], Place | None] = official_place
) -> list[str]:
    """Return the distinct `names`, given in order of arrival, in the order in which they apply.

    A name keeps its position, except that it moves before all names of its series (by `place_of`)
    that have a higher number.
    """
    ordered: list[str] = []
    places: dict[str, Place | None] = {}
    highest: dict[tuple[str, ...], tuple[int, ...]] = {}
    for name in names:
        if name in places:
            continue
        places[name] = own = place_of(name)
        at = len(ordered)
        if own is not None and own[1] < highest.setdefault(own[0], own[1]):
            at = next(n for n, other in enumerate(ordered) if _follows(places[other], own))
        elif own is not None:
            highest[own[0]] = own[1]
        ordered.insert(at, name)
    return ordered


def _follows(other: Place | None, own: Place) -> bool:
    """Return whether `other` has a higher number in the series of `own`."""
    return other is not None and other[0] == own[0] and other[1] > own[1]


def without_order(names: Iterable[str]) -> list[str]:
    """Return the names without a number in NLM's form, in the given order."""
    return [name for name in names if official_place(name) is None]


def check_one_baseline(names: Iterable[str]) -> None:
    """Raise InputError if NLM's names belong to different years; other names are ignored.

    Each year's baseline replaces all earlier files, and numbering starts again.
    """
    first: dict[str, str] = {}
    for name in names:
        if match := _NLM_NAME.match(name):
            first.setdefault(match[1], name)
    if len(first) > 1:
        old, new = min(first), max(first)
        raise InputError(
            f"{first[new]} and {first[old]} are of two years' baselines, and each replaces all "
            f"earlier files; build an index only from the files of 20{new}"
        )


@dataclass(frozen=True, slots=True)
class Gap:
    """Missing numbered files, from `first` to `last`, between two files that are present."""

    before: str
    first: str
    last: str
    after: str

    def __str__(self) -> str:
        missing = self.first if self.first == self.last else f"{self.first} to {self.last}"
        return f"{missing} missing between {self.before} and {self.after}"


def find_gaps(names: Iterable[str], after: str = "") -> list[Gap]:
    """Return the gaps in the numbers of `names`, such as pubmed26n1331.xml.gz, in order.

    Each prefix and year has its own numbering; other names have no gaps. With `after`, return only
    gaps that begin at that file or a later one.
    """
    series: dict[tuple[str, str], dict[int, tuple[str, str]]] = {}
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            prefix, year, number, suffix = match.groups()
            series.setdefault((prefix, year), {})[int(number)] = (name, suffix)
    gaps = []
    for (prefix, year), files in sorted(series.items()):
        for before, following in pairwise(sorted(files)):
            name, suffix = files[before]
            if following == before + 1 or natural_key(name) < natural_key(after):
                continue
            first, last = (
                f"{prefix}{year}n{number:04d}{suffix}" for number in (before + 1, following - 1)
            )
            gaps.append(Gap(name, first, last, files[following][0]))
    return gaps


def check_gaps(names: Iterable[str], after: str = "") -> None:
    """Raise InputError that names the missing files if there are gaps; see `find_gaps`."""
    if gaps := find_gaps(names, after):
        raise InputError(
            f"{'; '.join(map(str, gaps))}: records and deletions would be lost; add these "
            "files, or continue without them with --allow-gap"
        )
