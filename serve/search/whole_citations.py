"""Add all passages of the best citations to the evidence, so that the reader sees whole abstracts.

A citation is ranked, quoted and counted by one passage. Its other passages follow the ranked
evidence while the answer is written. Afterwards only those that support or contradict the answer,
or that it quotes, are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cluster.answers import Evidence
from serve.search.rank_hits import Hit


def other_passages(hit: Hit) -> Iterator[Evidence]:
    """Yield the other passages of the hit's citation.

    Yields nothing for a single-passage hit, or a citation that is retracted or has no abstract.
    """
    if hit.alone or hit.place is None:
        return
    for position in range(len(hit.fetched.passages)):
        if position != hit.place:
            found = replace(hit, place=position).evidence()
            if found is not None:
                yield found


def rest_of_citations(
    hits: Sequence[Hit], evidence: Sequence[Evidence], limit: int
) -> list[Evidence]:
    """Return the other passages of the first `limit` citations in `evidence`."""
    shown = list(dict.fromkeys(item.passage.pmid for item in evidence))[:limit]
    return [item for hit in hits if hit.pmid in shown for item in other_passages(hit)]


def first_passages(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return the first passage of each citation in `evidence`."""
    first: dict[int, Evidence] = {}
    for item in evidence:
        first.setdefault(item.passage.pmid, item)
    return tuple(first.values())


def decisive_passages(evidence: Sequence[Evidence], said: Sequence[str]) -> tuple[Evidence, ...]:
    """Return the first passage of each citation, and others with a stance or a text of `said`."""
    first = {item.passage.id for item in first_passages(evidence)}
    return tuple(
        item
        for item in evidence
        if item.passage.id in first
        or item.stance in ("support", "contradict")
        or any(text in item.passage.text for text in said)
    )
