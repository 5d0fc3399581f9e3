"""Boolean expressions over the fields of citations, as PubMed's query language has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from cluster.errors import InputError, cut
from cluster.index.filters.filters import Filters
from cluster.index.filters.read_dates import read_dates

TextField = Literal["tiab", "ti", "ab"]
Field = Literal["mh", "majr", "tiab", "ti", "ab", "au", "ta", "dp", "pt", "la"]
TEXT_FIELDS = get_args(TextField)
FIELDS = get_args(Field)
# As in PubMed, a truncated word has at least this many characters before the asterisk.
LEAST_STEM = 4


@dataclass(frozen=True, slots=True)
class Term:
    """A value that must occur in a field of the citation; case is ignored.

    Values of `tiab`, `ti` and `ab` are a word or a phrase; a final "*" stands for any end of the
    last word. Those of `mh` and `majr` are a MeSH heading or its UI; of `ta` a journal's title or
    ISO abbreviation; of `dp` a year or a range ("2015:2024"); of `la` a code such as "eng"; of
    `au` a name such as "Smith J". Raises InputError for a value that the field cannot have.
    """

    field: Field
    value: str

    def __post_init__(self) -> None:
        if self.field not in FIELDS:
            raise InputError(f"{self}: not a searchable field; use one of {', '.join(FIELDS)}")
        if not any(map(str.isalnum, self.value)):
            raise InputError(f"{self}: no letter or digit to search for; write a word")
        if self.field == "dp":
            Filters(**read_dates(self.value, str(self)))
        stem, star, after = self.value.partition("*")
        if not star:
            return
        if self.field not in TEXT_FIELDS or after:
            raise InputError(
                f"{self}: the asterisk can only end a word of [tiab], [ti] or [ab], or a phrase; "
                "write words in full, and a space for an asterisk within a name, as in "
                '"HLA-B 57 01"[tiab]'
            )
        if sum(map(str.isalnum, stem.replace("-", " ").split()[-1])) < LEAST_STEM:
            raise InputError(
                f"{self}: a truncated word needs at least {LEAST_STEM} characters before the "
                "asterisk; write more of them"
            )

    def __str__(self) -> str:
        return f"{cut(self.value)}[{self.field}]"


@dataclass(frozen=True, slots=True)
class And:
    """All of `parts` match; without parts, every citation does."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of `parts` matches; without parts, no citation does."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """`part` does not match."""

    part: Expression


Expression: TypeAlias = Term | And | Or | Not
EVERYTHING = And(())


def terms_of(expression: Expression) -> Iterator[Term]:
    """Yield the terms of `expression` from left to right, with repetitions."""
    match expression:
        case Term():
            yield expression
        case Not(part):
            yield from terms_of(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from terms_of(part)


def map_terms(expression: Expression, change: Callable[[Term], Term]) -> Expression:
    """Return `expression` with `change` applied to each term."""
    match expression:
        case Term():
            return change(expression)
        case Not(part):
            return Not(map_terms(part, change))
        case And(parts):
            return And(tuple(map_terms(part, change) for part in parts))
        case Or(parts):
            return Or(tuple(map_terms(part, change) for part in parts))
