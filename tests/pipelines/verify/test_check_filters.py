"""Filter columns that differ from the citations are reported despite valid checksums."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import tantivy

from cluster.index.filters.write_filters import FILTER_SCHEMA
from cluster.index.layout import FILTERS, PASSAGES
from cluster.index.terms.bags import BAGS
from pipelines.verify.verify_index import verify_index
from tests.pipelines.verify.built_index import HERE, SEGMENT, alter, only, read_table, reseal
from tests.pipelines.verify.test_check_segment import rewrite_postings


def put_value(table: pa.Table, row: int, column: str, value: object) -> pa.Table:
    rows = table.to_pylist()
    rows[row][column] = value
    return pa.Table.from_pylist(rows, FILTER_SCHEMA)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("year", 1905),
        ("flags", 1),
        ("journals", ["another journal"]),
        ("languages", ["fre"]),
        ("publication_types", ["review"]),
        ("mesh", ["d006801"]),
        ("design", ["guideline"]),
    ],
)
def test_filter_row_that_differs_from_its_citation_is_reported(
    index: Path, column: str, value: object
) -> None:
    held = read_table(index / SEGMENT / FILTERS).to_pylist()
    assert held[3][column] != value
    alter(index, FILTERS, lambda t: put_value(t, 3, column, value))
    found = verify_index(index).findings
    assert [(f.kind, f.pmids) for f in found if f.place == f"{SEGMENT}/{FILTERS}"] == [
        ("filters", (HERE[3],))
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.slice(1),
        lambda t: pa.concat_tables([t, t.slice(0, 1)]),
        lambda t: t.set_column(0, "year", pa.array([1999] * len(t))),
        lambda t: t.drop_columns(["mesh"]),
    ],
    ids=["a row less", "a row more", "another type", "a column less"],
)
def test_filter_columns_of_other_types_are_reported(
    index: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    alter(index, FILTERS, change)
    finding = only(verify_index(index))
    assert finding.place == f"{SEGMENT}/{FILTERS}"
    assert finding.kind in ("filters", "unreadable")


def test_missing_filter_postings_are_reported(index: Path) -> None:
    passages = read_table(index / SEGMENT / PASSAGES).num_rows
    rewrite_postings(index, "passages", passages)
    found = [f for f in verify_index(index).findings if f.kind == "filters"]
    assert [f.place for f in found] == [f"{SEGMENT}/bm25-passages"]


def test_postings_with_another_schema_are_reported(index: Path) -> None:
    directory = index / SEGMENT / "bm25-citations"
    for path in directory.iterdir():
        if path.name != BAGS:
            path.unlink()
    schema = tantivy.SchemaBuilder()
    schema.add_integer_field("row", fast=True)
    schema.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
    writer = tantivy.Index(schema.build(), path=str(directory)).writer(num_threads=1)
    for row in range(len(HERE)):
        writer.add_document(tantivy.Document(row=row, body="a"))
    writer.commit()
    writer.wait_merging_threads()
    reseal(index)
    found = verify_index(index).findings
    assert f"{SEGMENT}/bm25-citations" in {f.place for f in found if f.kind == "unreadable"}
