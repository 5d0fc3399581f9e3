"""Fetch the records of several citations in one request.

GET /v1/citations?pmids=1,2
"""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query
from pydantic import BaseModel

from cluster.appraisal import WeighedCitation
from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.contracts.request_forms import MAX_CITATIONS
from serve.http.service import Service, require_ready
from serve.http.workbench.collect_citations import collect_citations, missing_pmids

PMIDS = rf"^[1-9][0-9]{{0,14}}(,[1-9][0-9]{{0,14}}){{0,{MAX_CITATIONS - 1}}}$"
READ = problems(*KEY_STATUSES, 422, 503)
Pmids = Annotated[
    str,
    Query(
        pattern=PMIDS,
        description=f"PMIDs separated by commas, at most {MAX_CITATIONS}.",
        examples=["90000001,90000002"],
    ),
]


class CitationList(BaseModel):
    """Records in the requested order, without duplicates, with their weight as evidence.

    `missing` lists the PMIDs that are not in this index.
    """

    citations: list[WeighedCitation]
    missing: list[int]


def add_citations(api: FastAPI, service: Service) -> None:
    """Add the route to `api`."""

    @api.get("/v1/citations", responses=READ)
    async def citations(pmids: Pmids) -> CitationList:
        """Return the records of up to 100 PMIDs."""
        require_ready(service)
        wanted = list(dict.fromkeys(map(int, pmids.split(","))))
        found = await collect_citations(service, wanted)
        weighed = list(map(WeighedCitation.of, found))
        return CitationList(citations=weighed, missing=missing_pmids(wanted, found))
