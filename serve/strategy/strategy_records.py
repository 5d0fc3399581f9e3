"""Records of a search strategy: terms, concept blocks, and what each of them finds and loses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cluster.index.boolean.expressions import And, Expression, Or, Term


@dataclass(frozen=True, slots=True)
class StrategyTerm:
    """A heading or a word of a block.

    `hits` is the number of citations in the index that match, an estimate unless `exact`. `found`
    is the number of reference citations among them, and `loses` the number of reference citations
    that the strategy would lose without the term.
    """

    field: Literal["mh", "tiab"]
    value: str
    hits: int
    exact: bool
    found: int
    loses: int = 0

    @property
    def term(self) -> Term:
        """The term as part of a Boolean expression."""
        return Term(self.field, self.value)


@dataclass(frozen=True, slots=True)
class StrategyBlock:
    """Alternative terms for one concept of the question.

    `hits` and `found` are those of the block alone. For a block of the strategy, `without_hits` is
    the number of hits of the strategy without the block, and `excludes` the number of reference
    citations that only this block excludes. For a block that was left out, `excludes` is the number
    that it would exclude, and `without_hits` is None. `without_mh` and `without_tiab` are the
    numbers of reference citations that the strategy loses without the block's headings or words;
    None if the block has only one kind.
    """

    name: str
    terms: tuple[StrategyTerm, ...]
    hits: int
    exact: bool
    found: int
    excludes: int
    without_hits: int | None = None
    without_mh: int | None = None
    without_tiab: int | None = None

    @property
    def expression(self) -> Expression:
        """The block as a Boolean expression."""
        return either(term.term for term in self.terms)


@dataclass(frozen=True, slots=True)
class Strategy:
    """Boolean search strategy for a question, with its hits in the index.

    `reference` are the PMIDs of the best citations of the semantic search, which `recall` and
    `precision` refer to: `found` of them are among the `hits`. `limits` are the date, language and
    other filters in PubMed's syntax. `max_hits` is the limit that the strategy was tightened or
    widened to. `citations` is the number of citations in the index.
    """

    question: str
    pubmed: str
    hits: int
    reference: tuple[int, ...]
    found: int
    recall: float
    precision: float
    blocks: tuple[StrategyBlock, ...]
    left_out: tuple[StrategyBlock, ...]
    limits: tuple[str, ...]
    notes: tuple[str, ...]
    max_hits: int
    citations: int
    index_version: str
    last_source: str
    index_date: str
    coverage: str
    degraded: tuple[str, ...] = ()


def either(parts: Iterable[Expression]) -> Expression:
    """Return the expressions joined by OR; a single one unchanged."""
    listed = tuple(parts)
    return listed[0] if len(listed) == 1 else Or(listed)


def both(parts: Iterable[Expression]) -> Expression:
    """Return the expressions joined by AND; a single one unchanged."""
    listed = tuple(parts)
    return listed[0] if len(listed) == 1 else And(listed)
