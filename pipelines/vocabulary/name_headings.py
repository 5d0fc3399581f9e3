"""Collect the names of MeSH headings and substances, and how often each was used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cluster.text.vocabulary import normalise
from pipelines.vocabulary.mine_vocabulary import TermCounts

_TEXT = pa.large_string()

# Sources of names, in order of priority: a heading's preferred name, the same in natural order
# ("turned"), a substance's name, another name of a heading, and a name in UMLS but not in MeSH.
SOURCES = ("mesh", "turned", "chemical", "synonym", "umls")
_ROWS_A_PART = 100_000

# `key` is the normal form of `form`. `is_given` marks the name that a release prefers for a
# concept. Uses of a turned heading count for its form, but not again for its concept.
_NAMES = pa.schema(
    [
        pa.field("id", _TEXT),
        pa.field("key", _TEXT),
        pa.field("form", _TEXT),
        pa.field("citations", pa.int64()),
        pa.field("source", _TEXT),
        pa.field("is_given", pa.bool_()),
    ]
)


class GivenName(NamedTuple):
    """A name of `concept`, a `mesh:UI` or `umls:CUI`, in a release.

    `is_own` marks the one name of each concept that the release prefers.
    """

    concept: str
    name: str
    is_own: bool


def heading_names(counts: TermCounts, given: Iterable[GivenName]) -> Any:
    """Return the names of headings and substances: id, key, form, citations, source, is_given.

    `source` is one of SOURCES. A substance with the ui of a heading is that heading. Python code
    runs only for names of a release and for headings. Memory: about 100 bytes per row.
    """
    rows = chain(_given_rows(given), _used_rows(counts))
    parts = [_NAMES.empty_table()]
    while part := list(islice(rows, _ROWS_A_PART)):
        parts.append(pa.table(list(zip(*part, strict=True)), schema=_NAMES))
    headings = pa.concat_tables(parts)
    return pa.concat_tables([headings, _substances(counts.of_kind("chemical"), headings["id"])])


_Row = tuple[str, str, str, int, str, bool]


def _given_rows(given: Iterable[GivenName]) -> Iterator[_Row]:
    for concept, name, is_own in given:
        if concept.startswith("umls:"):
            yield concept, normalise(name), name, 0, "umls", is_own
        else:
            yield from _both_orders(concept, normalise(name), name, 0, is_own, is_own)


def _used_rows(counts: TermCounts) -> Iterator[_Row]:
    columns = [counts.of_kind("mesh")[c].to_pylist() for c in ("ui", "key", "form", "citations")]
    for ui, key, name, citations in zip(*columns, strict=True):
        yield from _both_orders(f"mesh:{ui}", key, name, citations, True, False)


def _both_orders(
    ident: str, key: str, name: str, citations: int, is_own: bool, is_given: bool
) -> Iterator[_Row]:
    yield ident, key, name, citations, "mesh" if is_own else "synonym", is_given
    if ", " in name:
        natural = natural_order(name)
        source = "turned" if is_own else "synonym"
        yield ident, normalise(natural), natural, citations, source, False


def natural_order(heading: str) -> str:
    """Return an inverted heading in natural order: "Type 2 Diabetes Mellitus".

    With several commas, the parts are reversed: "Leukemia, Myeloid, Acute" becomes "Acute Myeloid
    Leukemia".
    """
    return " ".join(reversed(heading.split(", ")))


def _substances(counted: Any, headings: Any) -> Any:
    as_heading = prefixed("mesh:", counted["ui"])
    has_no_ui = pc.equal(counted["ui"], "")
    as_substance = prefixed("chem:", pc.if_else(has_no_ui, counted["key"], counted["ui"]))
    ident = pc.if_else(pc.is_in(as_heading, headings), as_heading, as_substance)
    rows = len(counted)
    source = pa.repeat(pa.scalar("chemical", _TEXT), rows)
    columns = [ident, counted["key"], counted["form"], counted["citations"], source]
    return pa.table([*columns, pa.repeat(False, rows)], schema=_NAMES)


def prefixed(prefix: Any, strings: Any) -> Any:
    """Prepend `prefix`, one for all or one for each, to `strings`."""
    before = pa.scalar(prefix, _TEXT) if isinstance(prefix, str) else prefix
    return pc.binary_join_element_wise(before, strings, pa.scalar("", _TEXT))
