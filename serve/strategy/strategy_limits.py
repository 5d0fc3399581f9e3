"""Write filters as parts of a Boolean search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.index.boolean.expressions import And, Expression, Field, Not, Term
from cluster.index.filters.filters import FLAGS, Filters
from cluster.study_design.design_classifier import names_of_design
from serve.question.field_tags.field_names import publication_type
from serve.question.understand_question import Heading
from serve.strategy.strategy_records import both, either

_FIELDS: dict[str, Field] = {
    "journals": "ta", "publication_types": "pt", "languages": "la", "mesh": "mh", "authors": "au",
}  # fmt: skip
_ANIMALS = "animals"
_WHOLE_YEARS = "Ovid MEDLINE limits years only, so its form of the strategy has all of {}"
_NOT_EXPRESSED = "PubMed's syntax has no equivalent of the filter {}, so the strategy ignores it"


def design_headings(designs: Sequence[str]) -> list[str]:
    """Return the MeSH headings, in lower case, by which studies of `designs` are recognised."""
    return [name for design in designs for name in (*names_of_design(design)[1], _ANIMALS)]


def limit_terms(
    filters: Filters, headings: Mapping[str, str], designs: Mapping[str, Heading]
) -> tuple[list[Expression], tuple[str, ...]]:
    """Return the conditions of `filters` to join by AND, and notes on those that have no term.

    `headings` are the names of MeSH headings by their UI in lower case; others stay as UIs.
    `designs` has those of `design_headings` that the index knows.
    """
    parts: list[Expression] = []
    notes: list[str] = []
    if filters.first_day or filters.last_day:
        first = filters.first_day.year if filters.first_day else 1000
        last = filters.last_day.isoformat() if filters.last_day else "3000"
        parts.append(Term("dp", f"{first}:{last.removesuffix('-12-31').replace('-', '/')}"))
        if filters.last_day and not last.endswith("-12-31"):
            notes.append(_WHOLE_YEARS.format(filters.last_day.year))
    for name, field in _FIELDS.items():
        names = getattr(filters, name)
        values = [headings.get(value, value) if field == "mh" else value for value in names]
        if values:
            join = both if name in filters.all_of else either
            parts.append(join(Term(field, value) for value in values))
    if filters.humans is not None:
        parts.append(Term("mh", "Humans") if filters.humans else Not(Term("mh", "Humans")))
    ignored = [n for n in FLAGS if n != "humans" and getattr(filters, n) is not None]
    if filters.design:
        studies = [_design_terms(design, designs) for design in filters.design]
        parts += [either(term for terms in studies for term in terms)] if all(studies) else []
        ignored += [] if all(studies) else ["design"]
    return parts, (*notes, *map(_NOT_EXPRESSED.format, ignored))


def _design_terms(design: str, known: Mapping[str, Heading]) -> list[Expression]:
    """Return conditions that all studies of `design` meet at least one of; [] if unknown."""
    types, headings = names_of_design(design)
    terms: list[Expression] = [Term("pt", name) for name in map(publication_type, types) if name]
    terms += [Term("mh", known[name].name) for name in headings if name in known]
    if design == "animal" and _ANIMALS in known:
        terms.append(And((Term("mh", "Animals"), Not(Term("mh", "Humans")))))
    return terms
