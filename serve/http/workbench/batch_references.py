"""Citations of a batch as one file for reference managers.

GET /v1/batches/{job_id}/references
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from cluster.errors import InputError
from serve.contracts.problem_forms import KEY_STATUSES, problem, problems
from serve.http.batches_api import Batches, JobId
from serve.http.middleware.request_log import asker
from serve.http.service import Service
from serve.http.workbench.collect_citations import (
    collect_citations,
    missing_pmids,
    missing_words,
)
from serve.http.workbench.references_api import as_file, file_contents
from serve.references.export_citations import FORMATS, FormatName

# Bounds the memory for the records, and the load on the shards.
MOST_CITATIONS = 10_000
MOST_NAMED = 100
MISSING = "X-Missing-PMIDs"
REPLIES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": file_contents(FORMATS.values()),
        "headers": {
            MISSING: {
                "description": "PMIDs of the batch that are no longer in the index, and so not in "
                f"the file: the first {MOST_NAMED}, separated by commas.",
                "schema": {"type": "string"},
            }
        },
    },
    **problems(*KEY_STATUSES, 404, 409, 422, 503),
}


def add_batch_references(api: FastAPI, batches: Batches, service: Service) -> None:
    """Add the route to `api`."""

    @api.get("/v1/batches/{job_id}/references", response_class=Response, responses=REPLIES)
    async def references(job_id: JobId, format: FormatName = "ris") -> Response:
        """Return the citations of a finished batch as one file, in the order of its questions.

        Each citation appears once; 404 if none is in the index.
        """
        run = await batches.run(job_id, asker())
        wanted = await asyncio.to_thread(pmids_of_run, run)
        if len(wanted) > MOST_CITATIONS:
            raise InputError(
                f"batch {job_id} has {len(wanted):,} citations, and a reply {MOST_CITATIONS:,} at "
                f"most; export them with `citeray export --batch {job_id}`"
            )
        found = await collect_citations(service, wanted)
        missing = missing_pmids(wanted, found)
        if not found:
            return problem(404, missing_words(missing) or f"batch {job_id} has no citations")
        chosen = FORMATS[format]
        text = await asyncio.to_thread(chosen.write, found)
        reply = as_file(text.encode(), chosen.media_type, f"references-{job_id}.{chosen.ending}")
        if missing:
            reply.headers[MISSING] = ",".join(map(str, missing[:MOST_NAMED]))
        return reply


def pmids_of_run(run: bytes) -> list[int]:
    """Return the PMIDs of a run's documents in order, without duplicates."""
    entries = json.loads(run)["questions"]
    urls = (url for entry in entries for url in entry["documents"])
    return list(dict.fromkeys(int(url.rpartition("/")[2]) for url in urls))
