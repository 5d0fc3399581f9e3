"""References and related citations as tools of the Model Context Protocol."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cluster.errors import InputError
from cluster.settings.presets import load_system
from serve.contracts.request_forms import MAX_CITATIONS, Pmid, SystemName
from serve.http.answer_words import QUOTED
from serve.http.mcp_tools import Tool
from serve.http.service import Service
from serve.http.workbench.bound_reply import (
    DEFAULT_CHARACTERS,
    SEARCH,
    MaxChars,
    SearchReply,
    fit_reply,
    fit_search,
    left_words,
)
from serve.http.workbench.collect_citations import (
    collect_citations,
    missing_pmids,
    missing_words,
)
from serve.references.export_citations import FormatName, export_citations
from serve.references.find_related import related_request
from serve.references.prepare_for_style import StyleName
from serve.references.style_references import style_references

MOST_PMIDS = 100


class ReferencesForm(BaseModel):
    """PMIDs, and the style or format of their references."""

    model_config = ConfigDict(extra="forbid")

    pmids: Annotated[list[Pmid], Field(min_length=1, max_length=MOST_PMIDS)]
    style: Annotated[
        StyleName | None, Field(description="Reference style (default: vancouver).")
    ] = None
    format: Annotated[
        FormatName | None, Field(description="Format for reference managers, in place of a style.")
    ] = None
    max_chars: MaxChars = DEFAULT_CHARACTERS


class RelatedForm(BaseModel):
    """PMID of a citation, and the number of related ones to find."""

    model_config = ConfigDict(extra="forbid")

    pmid: Pmid
    k: Annotated[int, Field(ge=1, le=MAX_CITATIONS, strict=True)] = 10
    system: Annotated[
        SystemName | None, Field(description="Name of a preset (default: the server's own).")
    ] = None
    max_chars: MaxChars = DEFAULT_CHARACTERS


@dataclass(frozen=True, slots=True)
class ReferencesReply:
    """References of `pmids` as text; `left_out` is the number of those that did not fit."""

    pmids: tuple[int, ...]
    text: str
    left_out: int


REFERENCES: TypeAdapter[ReferencesReply] = TypeAdapter(ReferencesReply)


def reference_tools(service: Service, default_system: str) -> list[Tool]:
    """Return the tools for references and related citations."""

    async def references(form: ReferencesForm) -> tuple[ReferencesReply, str]:
        if form.format and form.style:
            raise InputError("give one of the fields format and style, not both")
        found = await collect_citations(service, form.pmids)
        if missing := missing_words(missing_pmids(form.pmids, found)):
            raise InputError(missing)
        style = form.style or "vancouver"
        styled = [] if form.format else await asyncio.to_thread(style_references, found, style)
        lines = [f"{number}. {reference.text}" for number, reference in enumerate(styled, 1)]

        def make(count: int) -> tuple[ReferencesReply, str]:
            left, kept = len(found) - count, found[:count]
            text = export_citations(kept, form.format) if form.format else "\n".join(lines[:count])
            reply = ReferencesReply(tuple(c.pmid for c in kept), text, left)
            return reply, "\n".join([QUOTED, text, *left_words(left)])

        return fit_reply(len(found), make, REFERENCES, form.max_chars)

    async def related(form: RelatedForm) -> tuple[SearchReply, str]:
        citation = await service.answerer.citation(form.pmid)
        if citation is None:
            raise InputError(f"PMID {form.pmid} is not in this index")
        system = load_system(form.system or default_system)
        found = await service.answerer.search(related_request(citation, system, form.k))
        return fit_search(service.record(found), form.max_chars)

    return [
        Tool(
            "format_references",
            "Format the references of PMIDs in a style (vancouver, apa, ama), or as a file for "
            f"reference managers ({', '.join(get_args(FormatName))}).",
            ReferencesForm,
            REFERENCES,
            references,
        ),
        Tool(
            "related_citations",
            "Find PubMed citations similar to one, by its title and the start of its abstract.",
            RelatedForm,
            SEARCH,
            related,
        ),
    ]
