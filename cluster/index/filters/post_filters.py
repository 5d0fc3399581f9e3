"""Filter values in a segment's BM25 indexes, and filters as a tantivy query over them."""

from __future__ import annotations

from collections.abc import Iterator

import tantivy

from cluster.index.filters.read_filters import SegmentFilters
from cluster.index.filters.write_filters import Posted, term_of

YEAR, TERMS = "year", "filters"


def add_fields(builder: tantivy.SchemaBuilder) -> None:
    """Add the filter fields to the schema of a BM25 index."""
    builder.add_integer_field(YEAR, fast=True)
    builder.add_text_field(TERMS, tokenizer_name="whitespace", index_option="basic")


def fields_of(posted: Posted) -> dict[str, int | str]:
    """Return the filter fields of one document; the year field is omitted without a year."""
    year = {} if posted.year is None else {YEAR: posted.year}
    return {**year, TERMS: posted.terms}


def filtered(
    query: tantivy.Query, filters: SegmentFilters, schema: tantivy.Schema
) -> tantivy.Query:
    """Restrict `query` to the documents that pass `filters`, without changing its scores."""
    must = [(tantivy.Occur.Must, query)]
    for occur, clause in _clauses(filters, schema):
        if occur == tantivy.Occur.Must:
            clause = tantivy.Query.const_score_query(clause, 0.0)
        must.append((occur, clause))
    return tantivy.Query.boolean_query(must)


def _clauses(
    filters: SegmentFilters, schema: tantivy.Schema
) -> Iterator[tuple[tantivy.Occur, tantivy.Query]]:
    if filters.year_from is not None or filters.year_to is not None:
        yield (
            tantivy.Occur.Must,
            tantivy.Query.range_query(
                schema, YEAR, tantivy.FieldType.Integer, filters.year_from, filters.year_to
            ),
        )
    for name, wanted in filters.flags.items():
        occur = tantivy.Occur.Must if wanted else tantivy.Occur.MustNot
        yield occur, _has_any(schema, [name])
    for name, codes in filters.clauses:
        yield tantivy.Occur.Must, _has_any(schema, [term_of(name, code) for code in codes])


def _has_any(schema: tantivy.Schema, terms: list[str]) -> tantivy.Query:
    if len(terms) == 1:
        return tantivy.Query.term_query(schema, TERMS, terms[0], index_option="basic")
    return tantivy.Query.term_set_query(schema, TERMS, terms)
