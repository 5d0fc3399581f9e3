"""The records of several citations at once, as a list of references needs them.

GET /v1/citations?pmids=1,2
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import FastAPI, Query
from pydantic import BaseModel

from cluster.weighing import WeighedCitation
from serve.http.problem_forms import KEYED, problems
from serve.http.request_forms import MAX_CITATIONS
from serve.http.service import Service, require_ready

PMIDS = rf"^[1-9][0-9]{{0,14}}(,[1-9][0-9]{{0,14}}){{0,{MAX_CITATIONS - 1}}}$"
READ = problems(*KEYED, 422, 503)
Pmids = Annotated[
    str,
    Query(
        pattern=PMIDS,
        description=f"PMIDs separated by commas, at most {MAX_CITATIONS}.",
        examples=["90000001,90000002"],
    ),
]


class CitationList(BaseModel):
    """The records in the order asked for, each once, with what they are worth.

    `missing` are PMIDs that are not in this index.
    """

    citations: list[WeighedCitation]
    missing: list[int]


def add_citations(api: FastAPI, service: Service) -> None:
    """Add the route to `api`."""

    @api.get("/v1/citations", responses=READ)
    async def citations(pmids: Pmids) -> CitationList:
        """The whole records of up to 100 PMIDs."""
        require_ready(service)
        wanted = list(dict.fromkeys(int(pmid) for pmid in pmids.split(",")))
        found = await asyncio.gather(*(service.citation(pmid) for pmid in wanted))
        return CitationList(
            citations=[WeighedCitation.of(citation) for citation in found if citation is not None],
            missing=[p for p, citation in zip(wanted, found, strict=True) if citation is None],
        )
