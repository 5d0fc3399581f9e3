"""The order in which a result is shown, and its citations counted by year and by design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from cluster.answers import Evidence, RankedCitation, SearchResult
from cluster.study_design.designs import DESIGNS, PLACES
from cluster.weighing import EvidenceCounts, Sort

R = TypeVar("R", bound=SearchResult)
Item = TypeVar("Item", RankedCitation, Evidence)
UNKNOWN = "unknown"


def arranged(found: R, sort: Sort) -> R:
    """`found` in the order `sort`, with the counts of its citations. What it holds stays the same.

    What is equal stays by relevance: newest year first by date, without a year last; by design
    in the order in which evidence weighs.
    """
    return replace(
        found,
        citations=_sorted(found.citations, sort),
        evidence=_sorted(found.evidence, sort),
        sort=sort,
        evidence_by=count_evidence(found.citations),
    )


def _sorted(items: Iterable[Item], sort: Sort) -> tuple[Item, ...]:
    keys: dict[Sort, Callable[[Item], int]] = {
        "relevance": lambda _: 0,
        "date": lambda item: -(item.year or 0),
        "design": lambda item: PLACES[item.design],
    }
    return tuple(sorted(items, key=keys[sort]))


def count_evidence(citations: Iterable[RankedCitation]) -> EvidenceCounts:
    """How many citations there are by year, in order, and by design, the weightiest first."""
    citations = list(citations)
    years = Counter(citation.year for citation in citations)
    designs = Counter(citation.design for citation in citations)
    known = {str(year): years[year] for year in sorted(filter(None, years))}
    unknown = {UNKNOWN: count} if (count := len(citations) - sum(known.values())) else {}
    return EvidenceCounts({**known, **unknown}, {d: designs[d] for d in DESIGNS if designs[d]})
