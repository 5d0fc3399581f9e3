"""Requests of the Boolean search, and the text of an export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from serve.contracts.request_forms import MAX_CITATIONS
from serve.pipeline.boolean_reply import BooleanHits
from serve.question.field_tags.parse_boolean import MAX_CHARACTERS
from serve.references.export_citations import FormatName, PartWriter

ExportName = Literal[FormatName, "pmids"]
MAX_OFFSET = 10**9
EXAMPLE = 'metformin[tiab] AND "AMP-Activated Protein Kinases"[mh:noexp] NOT review[pt]'
Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_CHARACTERS,
        description="A query in PubMed's syntax.",
        examples=[EXAMPLE],
    ),
]


class BooleanRequest(BaseModel):
    """Boolean query, and which of its citations to return."""

    model_config = ConfigDict(extra="forbid")

    query: Query
    limit: Annotated[int, Field(ge=0, le=MAX_CITATIONS, strict=True)] = 20
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET, strict=True)] = 0


class BooleanExport(BaseModel):
    """Boolean query, and the format of the file with all of its citations."""

    model_config = ConfigDict(extra="forbid")

    query: Query
    format: ExportName = "ris"


async def export_text(hits: BooleanHits, form: ExportName) -> AsyncIterator[str]:
    """Yield the file of all citations in parts; raises StageLostError."""
    if form == "pmids":
        yield "".join(f"{pmid}\n" for pmid in hits.pmids)
        return
    writer = PartWriter(form)
    async for part in hits.parts():
        yield await asyncio.to_thread(writer.write, part)
    yield writer.end()
