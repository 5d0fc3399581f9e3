"""Tables of numbers in Markdown."""

from __future__ import annotations

import math

from evaluation.tables import Column, Table, render_table


def shown(*columns: Column, **values: tuple[float, ...]) -> list[str]:
    return render_table(Table("A", columns, values)).splitlines()


def test_rounded_ties_are_all_bold() -> None:
    lines = shown(Column("MAP"), a=(0.50001,), b=(0.49999,), c=(0.4,))
    assert lines == [
        "### A",
        "",
        "| System | MAP |",
        "| --- | --- |",
        "| a | **0.5000** |",
        "| b | **0.5000** |",
        "| c | 0.4000 |",
    ]


def test_column_of_equal_values_has_no_best() -> None:
    assert "**" not in "".join(shown(Column("MAP"), a=(0.5,), b=(0.5,), c=(math.nan,)))


def test_missing_value_is_a_dash_and_never_bold() -> None:
    columns = (Column("one"), Column("two"))
    lines = shown(*columns, a=(math.nan, 0.1), b=(0.5, math.nan), c=(0.4, 0.3))
    assert lines[-3:] == [
        "| a | - | 0.1000 |",
        "| b | **0.5000** | - |",
        "| c | 0.4000 | **0.3000** |",
    ]


def test_run_name_is_escaped_in_markdown() -> None:
    lines = shown(Column("MAP"), **{"a|b\n*c*": (0.5,)})
    assert lines[-1] == r"| a\|b \*c\* | 0.5000 |"
