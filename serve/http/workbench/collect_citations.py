"""Fetch several citations concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cluster.records import Citation
from serve.http.service import Service

# Limit of concurrent calls to shards; more would delay the questions of users.
AT_ONCE = 16
MOST_NAMED = 5


async def collect_citations(service: Service, pmids: Sequence[int]) -> list[Citation]:
    """Return the citations of `pmids` in order, each once, without PMIDs not in the index.

    Raise StageLostError if a shard does not answer.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(pmid: int) -> Citation | None:
        async with turns:
            return await service.answerer.citation(pmid)

    found = await asyncio.gather(*map(one, dict.fromkeys(pmids)))
    return [citation for citation in found if citation is not None]


def missing_pmids(pmids: Sequence[int], found: Sequence[Citation]) -> list[int]:
    """Return the PMIDs without a citation in `found`, without duplicates."""
    held = {citation.pmid for citation in found}
    return [pmid for pmid in dict.fromkeys(pmids) if pmid not in held]


def missing_words(missing: Sequence[int]) -> str:
    """Return a message that names the first `missing` PMIDs, or "" if there are none."""
    if not missing:
        return ""
    named = ", ".join(map(str, missing[:MOST_NAMED]))
    more = f" and {len(missing) - MOST_NAMED:,} more" if len(missing) > MOST_NAMED else ""
    return f"PMID {named}{more}: not in this index"
