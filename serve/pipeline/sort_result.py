"""Sort a result for display, and count its citations by year and by study design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from cluster.answers import Evidence, RankedCitation, SearchResult
from cluster.appraisal import EvidenceCounts, Sort
from cluster.study_design.designs import DESIGNS, PLACES

R = TypeVar("R", bound=SearchResult)
Item = TypeVar("Item", RankedCitation, Evidence)
UNKNOWN = "unknown"


def arranged(found: R, sort: Sort) -> R:
    """Return `found` sorted by `sort`, with the counts of its citations.

    "date" puts the newest year first and items without a year last. "design" sorts by strength of
    evidence. Ties keep the order of relevance.
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
    """Count citations by year, in order, and by study design, strongest first."""
    citations = list(citations)
    years = Counter(citation.year for citation in citations)
    designs = Counter(citation.design for citation in citations)
    known = {str(year): years[year] for year in sorted(filter(None, years))}
    unknown = {UNKNOWN: count} if (count := len(citations) - sum(known.values())) else {}
    return EvidenceCounts({**known, **unknown}, {d: designs[d] for d in DESIGNS if designs[d]})
