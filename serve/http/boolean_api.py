"""Boolean search over HTTP, and as a tool of the Model Context Protocol.

POST /v1/search/boolean   POST /v1/search/boolean/export
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter

from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.http.answer_words import QUOTED
from serve.http.boolean_forms import BooleanExport, BooleanRequest, export_text
from serve.http.mcp_tools import Tool
from serve.http.service import Service, require_ready
from serve.http.workbench.bound_reply import DEFAULT_CHARACTERS, MaxChars, fit_reply
from serve.http.workbench.references_api import file_contents
from serve.pipeline.boolean_reply import BooleanResult, match_query
from serve.references.export_citations import FORMATS, Format

PMID_FILE = Format("PMIDs", "txt", "text/plain; charset=utf-8", lambda found: "")
TOTAL = "X-Total-Count"
RESULT = TypeAdapter(BooleanResult)
ASKED = problems(*KEY_STATUSES, 422, 503)
EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": file_contents([*FORMATS.values(), PMID_FILE]),
        "headers": {TOTAL: {"description": "Number of citations.", "schema": {"type": "integer"}}},
    },
    **ASKED,
}


class BooleanForm(BooleanRequest):
    """Boolean query in PubMed's syntax, and which of its citations to return."""

    max_chars: MaxChars = DEFAULT_CHARACTERS


def add_boolean(api: FastAPI, service: Service) -> None:
    """Add the routes to `api`."""

    @api.post("/v1/search/boolean", responses=ASKED)
    async def boolean(request: BooleanRequest) -> BooleanResult:
        """Return citations that match a query in PubMed's syntax, newest first, and their number.

        Titles and abstracts are compared word by word; headings and publication types exactly,
        without narrower ones.
        """
        require_ready(service)
        hits = await match_query(service.answerer, request.query)
        return await hits.page(request.limit, request.offset)

    @api.post("/v1/search/boolean/export", response_class=StreamingResponse, responses=EXPORTED)
    async def export(request: BooleanExport) -> StreamingResponse:
        """Return all citations that match a query as one file, newest first.

        The file is streamed; a connection that breaks off means that it is not complete.
        """
        require_ready(service)
        hits = await match_query(service.answerer, request.query)
        hits.check_complete()
        form = PMID_FILE if request.format == "pmids" else FORMATS[request.format]
        headers = {
            "Content-Disposition": f'attachment; filename="citations.{form.ending}"',
            TOTAL: str(len(hits.pmids)),
        }
        text = export_text(hits, request.format)
        return StreamingResponse(text, media_type=form.media_type, headers=headers)


def boolean_tool(service: Service) -> Tool:
    """Return the MCP tool for Boolean searches."""

    async def run(form: BooleanForm) -> tuple[BooleanResult, str]:
        hits = await match_query(service.answerer, form.query)
        found = await hits.page(form.limit, form.offset)
        head = [QUOTED, f"{found.total:,} citations match {found.query}", *found.notes]
        listed = [f"PMID {c.pmid}: {c.title} ({c.journal} {c.year})" for c in found.citations]

        def make(count: int) -> tuple[BooleanResult, str]:
            kept = replace(found, citations=found.citations[:count])
            return kept, "\n".join([*head, *found.degraded, *listed[:count]])

        return fit_reply(len(listed), make, RESULT, form.max_chars)

    return Tool(
        "boolean_search",
        "Run a Boolean query in PubMed's syntax: the number of all matching citations, and a page "
        "of them, newest first.",
        BooleanForm,
        RESULT,
        run,
    )
