"""Tables of numbers in Markdown."""

from __future__ import annotations

import math

from evaluation.tables.markdown import Column, Table, render_table


def shown(*columns: Column, digits: int = 4, **values: tuple[float, ...]) -> list[str]:
    return render_table(Table("A", columns, values), digits=digits).splitlines()


def test_what_looks_equal_is_equally_good() -> None:
    lines = shown(Column("MAP"), digits=2, a=(0.501,), b=(0.499,), c=(0.4,))
    assert lines == [
        "### A",
        "",
        "| System | MAP |",
        "| --- | --- |",
        "| a | **0.50** |",
        "| b | **0.50** |",
        "| c | 0.40 |",
    ]


def test_a_column_of_one_value_has_no_best() -> None:
    assert "**" not in "".join(shown(Column("MAP"), a=(0.5,), b=(0.5,), c=(math.nan,)))


def test_no_value_is_a_dash_and_never_the_best() -> None:
    columns = (Column("one"), Column("two"))
    lines = shown(*columns, digits=1, a=(math.nan, 0.1), b=(0.5, math.nan), c=(0.4, 0.3))
    assert lines[-3:] == ["| a | - | 0.1 |", "| b | **0.5** | - |", "| c | 0.4 | **0.3** |"]


def test_a_files_name_cannot_break_the_table() -> None:
    lines = shown(Column("MAP"), digits=1, **{"a|b\n*c*": (0.5,)})
    assert lines[-1] == r"| a\|b \*c\* | 0.5 |"
