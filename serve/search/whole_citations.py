"""All passages of the best citations, so that the reader reads each of them whole.

A citation is ranked, quoted and counted by one passage. Its other passages join the evidence
behind everything that was ranked; those that take a side, or that the answer quotes, stay there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cluster.answers import Evidence
from serve.search.rank_hits import Hit


def rest_of(hit: Hit) -> Iterator[Evidence]:
    """Yield the other passages of the hit's citation.

    None for a passage alone or a citation without an abstract, and none where it was retracted.
    """
    if hit.alone or hit.place is None:
        return
    for place in range(len(hit.fetched.passages)):
        if place != hit.place:
            found = replace(hit, place=place).evidence()
            if found is not None:
                yield found


def whole_of(hits: Sequence[Hit], evidence: Sequence[Evidence], limit: int) -> list[Evidence]:
    """The rest of the first `limit` citations in `evidence`."""
    shown = list(dict.fromkeys(item.passage.pmid for item in evidence))[:limit]
    return [item for hit in hits if hit.pmid in shown for item in rest_of(hit)]


def ranked(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """`evidence` without the rest of its citations: the first passage of each."""
    first: dict[int, Evidence] = {}
    for item in evidence:
        first.setdefault(item.passage.pmid, item)
    return tuple(first.values())


def telling(evidence: Sequence[Evidence], said: Sequence[str]) -> tuple[Evidence, ...]:
    """`evidence` without what of the rest of its citations takes no side and has nothing `said`."""
    first = {item.passage.id for item in ranked(evidence)}
    return tuple(
        item
        for item in evidence
        if item.passage.id in first
        or item.stance in ("support", "contradict")
        or any(text in item.passage.text for text in said)
    )
