"""Write citations as a CSV table for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from cluster.records import Citation, abstract_text
from serve.references.describe_citation import (
    doi_of,
    full_name,
    link_words,
    one_line,
    pubmed_url,
    title_text,
)

# Excel reads a file as UTF-8 only if it begins with this mark.
BYTE_ORDER_MARK = "\ufeff"
# Spreadsheets run a cell that begins with one of these as a formula, unless an apostrophe precedes
# it (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@")


def write_csv_rows(citations: Iterable[Citation]) -> str:
    """Return a row per citation, without CSV_HEADER; "; " separates the values in a cell."""
    return write_table(map(_row, citations), _COLUMNS).removeprefix(CSV_HEADER)


def write_table(rows: Iterable[Mapping[str, str]], columns: Sequence[str]) -> str:
    """Return the rows as CSV for spreadsheets: with a byte order mark, and without formulas."""
    out = io.StringIO(newline="")
    out.write(BYTE_ORDER_MARK)
    writer = csv.DictWriter(out, columns)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _as_text(value) for name, value in row.items()})
    return out.getvalue()


def _as_text(value: str) -> str:
    return f"'{value}" if value.startswith(_FORMULA) else value


def _joined(values: Iterable[str]) -> str:
    return "; ".join(one_line(value) for value in values)


def _row(citation: Citation) -> dict[str, str]:
    c = citation
    return {
        "pmid": str(c.pmid),
        "title": title_text(c),
        "authors": _joined(map(full_name, c.authors)),
        "journal": one_line(c.journal),
        "journal_abbreviation": one_line(c.journal_abbreviation),
        "year": "" if c.year is None else str(c.year),
        "month": "" if c.month is None else str(c.month),
        "volume": one_line(c.volume),
        "issue": one_line(c.issue),
        "pages": one_line(c.pages),
        "doi": doi_of(c),
        "pmcid": one_line(c.pmcid),
        "languages": _joined(c.languages),
        "publication_types": _joined(c.publication_types),
        "mesh": _joined(f"{'*' if h.major else ''}{h.name}" for h in c.mesh),
        "keywords": _joined(c.keywords),
        "chemicals": _joined(chemical.name for chemical in c.chemicals),
        "retracted": "yes" if c.retracted else "no",
        "links": _joined(map(link_words, c.links)),
        "abstract": one_line(c.abstract),
        "other_abstracts": _joined(
            f"{other.language}: {abstract_text(other.sections)}" for other in c.other_abstracts
        ),
        "url": pubmed_url(c.pmid),
    }


_COLUMNS = tuple(_row(Citation(pmid=1)))
CSV_HEADER = write_table([], _COLUMNS)
