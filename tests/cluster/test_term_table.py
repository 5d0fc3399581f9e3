"""Term counts are correct for any number of units, tables and terms in memory."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.errors import IndexFormatError
from cluster.index.terms import term_table
from cluster.index.terms.term_table import (
    NO_TERMS,
    TERMS_SCHEMA,
    TermCounter,
    frequency_of,
    map_terms,
    merge_terms,
    merged_batches,
    negated,
    write_terms,
)

TERMS = st.text(st.sampled_from("abz\u00e9\U0001f600"), min_size=1, max_size=3)
# Few terms, because a merge by ranges of one term takes milliseconds for each.
UNIT = st.tuples(st.sampled_from(["citations", "passages"]), st.lists(TERMS, max_size=5))
UNITS = st.lists(UNIT, max_size=5)


def counted(units: list[tuple[str, list[str]]]) -> pa.Table:
    counter = TermCounter()
    for over, terms in units:
        counter.add(over, terms)
    return counter.table()


def expected(units: list[tuple[str, list[str]]]) -> dict[str, tuple[int, int]]:
    held = {over: Counter[str]() for over in ("citations", "passages")}
    for over, terms in units:
        held[over].update(set(terms))
    names = sorted(set(held["citations"]) | set(held["passages"]))
    return {name: (held["citations"][name], held["passages"][name]) for name in names}


def rows(table: pa.Table) -> dict[str, tuple[int, int]]:
    return {row["term"]: (row["citations"], row["passages"]) for row in table.to_pylist()}


@pytest.fixture(params=[1, 3, 200_000], autouse=True)
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set how many terms are held in memory; a small number gives many tables and ranges."""
    monkeypatch.setattr(term_table, "HELD_TERMS", request.param)
    monkeypatch.setattr(term_table, "MERGED_TERMS", request.param)


@pytest.mark.slow
@settings(max_examples=30)
@given(UNITS)
def test_unit_counts_once_per_term(units: list) -> None:
    table = counted(units)
    assert rows(table) == expected(units)
    assert table["term"].to_pylist() == sorted(table["term"].to_pylist())
    assert table.schema == TERMS_SCHEMA


@pytest.mark.slow
@settings(max_examples=30)
@given(st.tuples(UNITS, UNITS, UNITS), TERMS)
def test_tables_are_added_subtracted_and_looked_up_together(parts: tuple, term: str) -> None:
    tables = [counted(units) for units in parts]
    first, second, third = parts
    together = expected(first + second + third)
    assert rows(merge_terms(tables)) == together
    assert merge_terms([counted(first + second), negated(tables[1])]) == tables[0]
    citations, passages = together.get(term, (0, 0))
    assert frequency_of(tables, term, "citations") == citations
    assert frequency_of(tables, term, "passages") == passages


def test_term_table_survives_a_round_trip(tmp_path: Path) -> None:
    assert counted([]) == NO_TERMS == merge_terms([])
    table = counted([("citations", ["fever", "aspirin"]), ("passages", ["fever"])])
    write_terms(merged_batches([table]), tmp_path / "terms.arrow")
    assert map_terms(tmp_path / "terms.arrow") == table


def test_invalid_term_tables_are_rejected(tmp_path: Path) -> None:
    for data in (b"", b"no table"):
        (tmp_path / "terms.arrow").write_bytes(data)
        with pytest.raises(IndexFormatError, match="cannot be read as term counts"):
            map_terms(tmp_path / "terms.arrow")
    with pa.ipc.new_file(tmp_path / "other.arrow", pa.schema([("x", pa.int64())])):
        pass
    with pytest.raises(IndexFormatError, match=r"not term counts .*\['x'\]"):
        map_terms(tmp_path / "other.arrow")
