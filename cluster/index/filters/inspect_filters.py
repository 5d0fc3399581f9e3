"""Look up the values of filters in a shard, and count the citations that pass.

Values are looked up in the dictionaries of the filterable columns, so no citations are read.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.index.filters.filters import Filters
from cluster.index.read_segment import SegmentReader

# The list columns whose values only the index knows; study designs are a fixed list.
CHECKED = ("journals", "publication_types", "languages", "mesh")
# Maximum number of suggestions for a value that the index does not hold.
MOST_NEAR = 3
# A column with at most this many values is listed in full if none of them is close.
MOST_LISTED = 6
_CUTOFF = 0.6
# Longer values are truncated, because the time of a comparison grows with their length.
_MOST_CHARACTERS = 100

Values = Mapping[str, Sequence[str]]
"""Values by the name of their list column."""


@dataclass(frozen=True, slots=True)
class FilterInquiry:
    """Request to a shard: look up `values`, find the values in the index that are closest to those
    of `near`, and count the live citations that pass each filter of `count`.
    """

    values: Values = field(default_factory=dict)
    near: Values = field(default_factory=dict)
    count: tuple[Filters, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterFacts:
    """A shard's reply: the values that it does not hold, the values closest to each value of
    `near`, and the counts in the order of the request.
    """

    unknown: Values
    near: Mapping[str, Mapping[str, tuple[str, ...]]]
    counts: tuple[int, ...]


def inspect_filters(segments: Sequence[SegmentReader], asked: FilterInquiry) -> FilterFacts:
    """Return the reply to `inquiry` for the segments of one shard."""
    columns = [segment.opened.filters for segment in segments]
    unknown = {
        name: [value for value in values if not any(c.holds(name, value) for c in columns)]
        for name, values in asked.values.items()
    }
    near = {}
    for name, values in asked.near.items():
        held = sorted({value for c in columns for value in c.values(name) if value})
        near[name] = {value: closest_values(value, held) for value in values}
    counts = tuple(sum(s.count_passing(filters) for s in segments) for filters in asked.count)
    return FilterFacts({name: found for name, found in unknown.items() if found}, near, counts)


def closest_values(value: str, held: Iterable[str]) -> tuple[str, ...]:
    """Return up to MOST_NEAR of the `held` values, those closest to `value` first.

    Values with matching initials come first ("rct" for "randomized controlled trial"), then similar
    spellings, then values of which one contains the other. If nothing is close, all held values are
    returned, provided there are at most MOST_LISTED.
    """
    every, value = list(held), value[:_MOST_CHARACTERS]
    initials = [one for one in every if _initials(one) == value.replace(".", "")]
    spelt = difflib.get_close_matches(value, every, n=MOST_NEAR, cutoff=_CUTOFF)
    parts = [one for one in every if len(one) > 1 and (value in one or one in value)]
    parts.sort(key=lambda one: (abs(len(one) - len(value)), one))
    few = every if len(every) <= MOST_LISTED else []
    return tuple(dict.fromkeys([*initials, *spelt, *parts]))[:MOST_NEAR] or tuple(few)


def either(values: Sequence[str]) -> str:
    """Return the values in quotes: "'a', 'b' or 'c'"."""
    quoted = [repr(value) for value in values]
    return " or ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))


def _initials(value: str) -> str:
    words = value.replace("-", " ").split()
    return "".join(word[0] for word in words) if len(words) > 1 else ""
