"""Citations of a batch as one file for reference managers, and its answers as a document.

GET /v1/batches/{job_id}/references   GET /v1/batches/{job_id}/document
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from cluster.errors import InputError
from serve.batches.serve_jobs import ServedBatches
from serve.contracts.problem_forms import KEY_STATUSES, problem, problems
from serve.http.batches_api import JobId
from serve.http.middleware.request_log import asker
from serve.http.service import Service
from serve.http.workbench.collect_citations import (
    collect_citations,
    missing_pmids,
    missing_words,
)
from serve.http.workbench.references_api import as_file, file_contents
from serve.references.documents.number_run import number_run, pmids_of
from serve.references.documents.write_document import FORMS
from serve.references.documents.write_docx import write_docx_of
from serve.references.export_citations import FORMATS, FormatName, export_citations
from serve.references.prepare_for_style import StyleName

# Bounds the memory for the records, and the load on the shards.
MOST_CITATIONS = 10_000
MOST_NAMED = 100
# Lower, because formatting a reference in a style is slow.
MOST_DOCUMENTED = 1000
MISSING = "X-Missing-PMIDs"
REPLIES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": file_contents(FORMATS.values()),
        "headers": {
            MISSING: {
                "description": f"The first {MOST_NAMED} PMIDs of the batch that are not in the "
                "file, because they are no longer in the index; separated by commas.",
                "schema": {"type": "string"},
            }
        },
    },
    **problems(*KEY_STATUSES, 404, 409, 422, 503),
}
DOCUMENT: dict[int | str, dict[str, Any]] = {
    200: {"content": file_contents([FORMS["docx"]])},
    **problems(*KEY_STATUSES, 404, 409, 422, 503),
}


def add_batch_references(api: FastAPI, batches: ServedBatches, service: Service) -> None:
    """Add the routes to `api`."""

    @api.get("/v1/batches/{job_id}/references", response_class=Response, responses=REPLIES)
    async def references(job_id: JobId, format: FormatName = "ris") -> Response:
        """Return the citations of a finished batch as one file, in the order of its questions.

        Each citation appears once; 404 if none is in the index.
        """
        run = await batches.run(job_id, asker())
        entries = await asyncio.to_thread(entries_of_run, run)
        wanted = pmids_of_entries(entries)
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
        text = await asyncio.to_thread(export_citations, found, format)
        reply = as_file(text.encode(), chosen.media_type, f"references-{job_id}.{chosen.ending}")
        if missing:
            reply.headers[MISSING] = ",".join(map(str, missing[:MOST_NAMED]))
        return reply

    @api.get("/v1/batches/{job_id}/document", response_class=Response, responses=DOCUMENT)
    async def document(job_id: JobId, style: StyleName = "vancouver") -> Response:
        """Return the answers of a finished batch as a Word document, with references in `style`."""
        entries = await asyncio.to_thread(entries_of_run, await batches.run(job_id, asker()))
        wanted = pmids_of_entries(entries)
        if len(wanted) > MOST_DOCUMENTED:
            raise InputError(
                f"batch {job_id} has {len(wanted):,} citations, and a document {MOST_DOCUMENTED:,} "
                f"at most; read its run at /v1/batches/{job_id}/run"
            )
        found = await collect_citations(service, wanted)

        def write() -> bytes:
            today = datetime.now(UTC).date()
            return write_docx_of(number_run(entries, found, style, today), f"Batch {job_id}")

        content = await asyncio.to_thread(write)
        form = FORMS["docx"]
        return as_file(content, form.media_type, f"answers-{job_id}.{form.ending}")


def entries_of_run(run: bytes) -> list[dict[str, Any]]:
    """Return the entries of a run file."""
    entries: list[dict[str, Any]] = json.loads(run)["questions"]
    return entries


def pmids_of_entries(entries: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the PMIDs of the documents of a run's entries in order, without duplicates."""
    return list(dict.fromkeys(pmid for entry in entries for pmid in pmids_of(entry)))
