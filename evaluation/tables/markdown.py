"""Markdown tables of numbers, with the best value of each column in bold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `direction` is 1 if more is better, -1 if less is better, 0 if neither is."""

    name: str
    direction: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """Values by row name, in the order of `columns`; NaN if a value is missing."""

    title: str
    columns: tuple[Column, ...]
    rows: Mapping[str, Sequence[float]]


def render_table(table: Table) -> str:
    """Return the table with its title.

    The best value is determined after rounding to four decimals; a column whose rounded values are
    all equal has none.
    """
    shown = {name: list(map(_shown, values)) for name, values in table.rows.items()}
    best = [
        _best([texts[place] for texts in shown.values()], column.direction)
        for place, column in enumerate(table.columns)
    ]
    rows = [
        [
            escape(name),
            *(f"**{t}**" if t == top else t for t, top in zip(texts, best, strict=True)),
        ]
        for name, texts in shown.items()
    ]
    headings = ["System", *(column.name for column in table.columns)]
    return "\n".join([f"### {table.title}", "", *table_lines(headings, rows)])


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose cells are Markdown."""
    for cells in (headings, ["---"] * len(headings), *rows):
        yield f"| {' | '.join(cells)} |"


def _shown(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:z.4f}"


def _best(texts: Sequence[str], direction: int) -> str | None:
    known = [text for text in texts if text != "-"]
    if len(set(known)) < 2 or not direction:
        return None
    return max(known, key=lambda text: direction * float(text))


def escape(name: str) -> str:
    """Escape a name for Markdown and put it on one line."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|~" else c for c in " ".join(name.split()))
