"""Several citations at once, for references."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cluster.records import Citation
from serve.http.service import Service

# Each is a call to one shard; more at once would keep questions waiting.
AT_ONCE = 16
MOST_NAMED = 5


async def collect_citations(service: Service, pmids: Sequence[int]) -> list[Citation]:
    """The citations of `pmids` in their order, each once, without those not in the index.

    Raises StageLostError where a shard does not answer.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(pmid: int) -> Citation | None:
        async with turns:
            return await service.citation(pmid)

    found = await asyncio.gather(*map(one, dict.fromkeys(pmids)))
    return [citation for citation in found if citation is not None]


def missing_words(pmids: Sequence[int], found: Sequence[Citation]) -> str:
    """Which of `pmids` were not found, in a sentence; "" where all were."""
    held = {citation.pmid for citation in found}
    missing = [pmid for pmid in dict.fromkeys(pmids) if pmid not in held]
    if not missing:
        return ""
    named = ", ".join(map(str, missing[:MOST_NAMED]))
    more = f" and {len(missing) - MOST_NAMED:,} more" if len(missing) > MOST_NAMED else ""
    return f"PMID {named}{more}: not in this index"
