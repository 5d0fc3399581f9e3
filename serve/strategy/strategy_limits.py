"""Write filters as parts of a Boolean search."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.index.boolean.expressions import Expression, Field, Not, Term
from cluster.index.filters.filters import Filters
from serve.strategy.strategy_records import both, either

_FIELDS: dict[str, Field] = {
    "journals": "ta", "publication_types": "pt", "languages": "la", "mesh": "mh", "authors": "au",
}  # fmt: skip
_NOT_EXPRESSED = "PubMed's syntax has no equivalent of the filter {}, so the strategy ignores it"


def limit_terms(
    filters: Filters, headings: Mapping[str, str]
) -> tuple[list[Expression], tuple[str, ...]]:
    """Return the conditions of `filters` to join by AND, and notes on those that have no term.

    `headings` are the names of MeSH headings by their UI in lower case; others stay as UIs.
    """
    parts: list[Expression] = []
    if filters.first_day or filters.last_day:
        first = filters.first_day.year if filters.first_day else 1000
        last = filters.last_day.isoformat() if filters.last_day else "3000"
        parts.append(Term("dp", f"{first}:{last.removesuffix('-12-31').replace('-', '/')}"))
    for name, field in _FIELDS.items():
        names = getattr(filters, name)
        values = [headings.get(value, value) if field == "mh" else value for value in names]
        if values:
            join = both if name in filters.all_of else either
            parts.append(join(Term(field, value) for value in values))
    if filters.humans is not None:
        parts.append(Term("mh", "Humans") if filters.humans else Not(Term("mh", "Humans")))
    ignored = [name for name in ("retracted", "has_abstract") if getattr(filters, name) is not None]
    ignored += ["design"] if filters.design else []
    return parts, tuple(map(_NOT_EXPRESSED.format, ignored))
