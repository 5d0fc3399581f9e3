"""Fetch several citations concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cluster.records import Citation
from serve.http.service import Service

# Concurrent calls to shards; more would delay questions.
AT_ONCE = 16
MOST_NAMED = 5


async def collect_citations(service: Service, pmids: Sequence[int]) -> list[Citation]:
    """Return the citations of `pmids` in order, without duplicates and those not in the index.

    Raise StageLostError if a shard does not answer.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(pmid: int) -> Citation | None:
        async with turns:
            return await service.citation(pmid)

    found = await asyncio.gather(*map(one, dict.fromkeys(pmids)))
    return [citation for citation in found if citation is not None]


def missing_words(pmids: Sequence[int], found: Sequence[Citation]) -> str:
    """Return a message with the PMIDs that were not found, or "" if all were."""
    held = {citation.pmid for citation in found}
    missing = [pmid for pmid in dict.fromkeys(pmids) if pmid not in held]
    if not missing:
        return ""
    named = ", ".join(map(str, missing[:MOST_NAMED]))
    more = f" and {len(missing) - MOST_NAMED:,} more" if len(missing) > MOST_NAMED else ""
    return f"PMID {named}{more}: not in this index"
