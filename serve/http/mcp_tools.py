"""Search, answers and citations as tools of the Model Context Protocol, at `/mcp`.

The transport is stateless streamable HTTP with one JSON document per response, so any gateway
replica can answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from mcp import MCPError, types
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from cluster.appraisal import WeighedCitation
from cluster.errors import InputError
from cluster.settings.presets import system_names
from serve.contracts.request_forms import Pmid, SearchRequest, explain_problems
from serve.contracts.stage_watch import StageLostError
from serve.http.answer_words import QUOTED, citation_words
from serve.http.event_stream import as_failure
from serve.http.service import Service, require_ready
from serve.http.workbench.bound_reply import (
    ANSWER,
    DEFAULT_CHARACTERS,
    SEARCH,
    AnswerReply,
    MaxChars,
    SearchReply,
    fit_answer,
    fit_reply,
    fit_search,
)
from serve.http.workbench.collect_citations import collect_citations
from serve.references.documents.number_answer import cited_pmids

PATH = "/mcp"
INSTRUCTIONS = (
    "Biomedical questions answered from PubMed. Every sentence of an answer names the PMIDs "
    "that support it, or says that no evidence supports it; repeat that when you use it. "
    f"{QUOTED}"
)
MEANINGS = {
    "question": "A biomedical question in plain English.",
    "system": "Name of a preset (default: the server's own).",
    "k": "Number of citations to return.",
    "type": "Type of answer; unknown: guessed from the question.",
    "exclude": "PMIDs to leave out.",
    "filters": "Restrict the citations, for example by year, journal, publication type or study "
    "design.",
    "sort": "Order of the citations: relevance, date (newest first) or design (strongest first).",
    "turns": "Earlier questions of the conversation and their answers, oldest first; they "
    "complete a follow-up question such as 'and in children?'.",
    "budget_ms": "Time limit of the response in milliseconds (0: the server's own limit).",
    "max_chars": "Maximum length of the response in characters, about four per token. Whole "
    "citations are left out to fit, the last ones first.",
}
CITATION: TypeAdapter[WeighedCitation] = TypeAdapter(WeighedCitation)
READS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True
)


def _tell_meanings(schema: dict[str, Any]) -> None:
    """Reduce the JSON schema to the fields in MEANINGS, and add their descriptions."""
    described = {name: schema["properties"][name] for name in MEANINGS}
    schema["properties"] = {
        name: {**described[name], "description": MEANINGS[name]} for name in described
    }
    schema["properties"]["system"]["description"] += f" There are: {', '.join(system_names())}."
    schema.pop("examples", None)


class QuestionForm(SearchRequest):
    """Biomedical question to answer from PubMed, with options."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_tell_meanings)

    max_chars: MaxChars = DEFAULT_CHARACTERS


class CitationForm(BaseModel):
    """PMID of the PubMed record to return."""

    model_config = ConfigDict(extra="forbid")

    pmid: Pmid
    max_chars: MaxChars = DEFAULT_CHARACTERS


def _as_json_schema(value: Any, depth: int = 4) -> Any:
    """Return arguments as JSON Schema reads them, to `depth` levels.

    101.0 is an integer there. A field that is null or "" was left out: language models fill in
    optional fields that way.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict) and depth:
        given = {name: each for name, each in value.items() if each not in (None, "")}
        return {name: _as_json_schema(each, depth - 1) for name, each in given.items()}
    if isinstance(value, list) and depth:
        return [_as_json_schema(each, depth - 1) for each in value]
    return value


@dataclass(frozen=True)
class Tool:
    """MCP tool. `run` takes the validated form, and returns the result as a record and as text."""

    name: str
    about: str
    form: type[BaseModel]
    result: TypeAdapter[Any]
    run: Callable[[Any], Awaitable[tuple[Any, str]]]

    def listed(self) -> types.Tool:
        """Return the MCP description of the tool, with the JSON schemas of its input and output."""
        return types.Tool(
            name=self.name,
            description=f"{self.about} {QUOTED}",
            input_schema=self.form.model_json_schema(),
            output_schema=self.result.json_schema(mode="serialization"),
            annotations=READS,
        )

    async def call(self, arguments: dict[str, Any]) -> types.CallToolResult:
        """Run the tool; raise pydantic's ValidationError for invalid arguments."""
        record, words = await self.run(self.form.model_validate(_as_json_schema(arguments)))
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=words)]
        structured = self.result.dump_python(record, mode="json")
        return types.CallToolResult(content=content, structured_content=structured)


def _make_tools(service: Service, default_system: str) -> list[Tool]:
    async def search(form: QuestionForm) -> tuple[SearchReply, str]:
        found = service.record(await service.answerer.search(form.as_request(default_system)))
        return fit_search(found, form.max_chars)

    async def answer(form: QuestionForm) -> tuple[AnswerReply, str]:
        asked = form.as_request(default_system)
        written = service.record(await service.answerer.answer(asked))
        try:
            cited = await collect_citations(service, cited_pmids(written))
        except StageLostError:
            # Reply without the records. The reference list says that they could not be read.
            cited = []
        return await asyncio.to_thread(fit_answer, written, cited, form.max_chars)

    async def citation(form: CitationForm) -> tuple[WeighedCitation, str]:
        found = await service.answerer.citation(form.pmid)
        if found is None:
            raise InputError(f"PMID {form.pmid} is not in this index")
        weighed = WeighedCitation.of(found)
        return fit_reply(0, lambda _: (weighed, citation_words(found)), CITATION, form.max_chars)

    return [
        Tool(
            "search_pubmed",
            "Search PubMed: ranked citations for a question, with the relevant passages.",
            QuestionForm,
            SEARCH,
            search,
        ),
        Tool(
            "answer_question",
            "Answer a question briefly; every sentence names the PMIDs that support it. The "
            "verdict is answered, mixed (the sources disagree; both sides are quoted) or "
            "not_enough_evidence (no answer; the nearest citations are listed). A reference list "
            "follows.",
            QuestionForm,
            ANSWER,
            answer,
        ),
        Tool(
            "get_citation",
            "Return the PubMed record of one PMID: title, abstract, journal, headings, study "
            "design, and notices of a retraction, an expression of concern or a correction.",
            CitationForm,
            CITATION,
            citation,
        ),
    ]


def make_server(service: Service, default_system: str, more: Sequence[Tool] = ()) -> Server:
    """Return the MCP server. It reports errors as tool errors with a message of one sentence."""
    tools = {tool.name: tool for tool in (*_make_tools(service, default_system), *more)}
    listed = [tool.listed() for tool in tools.values()]

    async def list_tools(_: Any, params: types.PaginatedRequestParams | None) -> Any:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in tools:
            known = ", ".join(tools)
            message = f"no tool is named {params.name[:100]!r}; there are: {known}"
            raise MCPError(types.INVALID_PARAMS, message)
        try:
            require_ready(service)
            return await tools[params.name].call(params.arguments or {})
        except ValidationError as error:
            return _failed(explain_problems(error.errors()))
        except Exception as error:
            return _failed(as_failure(error)[1])

    return Server(
        "citeray",
        title="CiteRay",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _failed(message: str) -> types.CallToolResult:
    text = types.TextContent(type="text", text=message)
    return types.CallToolResult(content=[text], is_error=True)


class McpEndpoint:
    """ASGI application for `/mcp`; stateless, so each request has its own session manager."""

    def __init__(self, server: Server) -> None:
        self._server = server
        # Otherwise this logger writes the start and end of each request's manager, at INFO.
        logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def add_mcp(api: FastAPI, service: Service, default_system: str, more: Sequence[Tool] = ()) -> None:
    """Add `/mcp` to `api` with the tools of this module and those of `more`."""
    endpoint = McpEndpoint(make_server(service, default_system, more))
    api.router.routes.append(Route(PATH, endpoint, methods=["POST"]))
