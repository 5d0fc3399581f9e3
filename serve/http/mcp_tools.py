"""The search, the answers and the citations as tools of the Model Context Protocol, at `/mcp`.

Streamable HTTP without sessions, each reply one JSON document: any gateway replica can answer.
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

from cluster.errors import InputError
from cluster.settings.presets import system_names
from cluster.weighing import WeighedCitation
from serve.graph.watch_stages import StageLostError
from serve.http.answer_words import QUOTED, citation_words
from serve.http.event_stream import as_failure
from serve.http.request_forms import Pmid, SearchRequest, explain_problems
from serve.http.service import Service, require_ready
from serve.http.workbench.bound_reply import (
    DEFAULT_CHARACTERS,
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
    "system": "A preset; left out: the server's own.",
    "k": "How many citations to give.",
    "type": "What kind of answer is wanted; unknown: guessed from the question.",
    "exclude": "PMIDs to leave out.",
    "filters": "Which citations may be found: years, journals, publication types, study designs "
    "and the like.",
    "sort": "Order of the citations: relevance, date (newest first) or design (strongest first).",
    "turns": "Earlier questions of the conversation and their answers, the oldest first: they "
    "complete a follow-up question such as 'and in children?'.",
    "budget_ms": "How long the reply may take; 0: as long as the server allows.",
    "max_chars": "The most characters of the reply, about four a token. Whole citations are left "
    "out to keep to it, the last ones first.",
}
CITATION: TypeAdapter[WeighedCitation] = TypeAdapter(WeighedCitation)
READS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True
)


def _tell_meanings(schema: dict[str, Any]) -> None:
    """Only what a model can use of the form, and what each field means."""
    told = {name: schema["properties"][name] for name in MEANINGS}
    schema["properties"] = {name: {**told[name], "description": MEANINGS[name]} for name in told}
    schema["properties"]["system"]["description"] += f" There are: {', '.join(system_names())}."
    schema.pop("examples", None)


class QuestionForm(SearchRequest):
    """A biomedical question, and how it is to be answered from PubMed."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_tell_meanings)

    max_chars: MaxChars = DEFAULT_CHARACTERS


class CitationForm(BaseModel):
    """The PubMed record to get."""

    model_config = ConfigDict(extra="forbid")

    pmid: Pmid
    max_chars: MaxChars = DEFAULT_CHARACTERS


@dataclass(frozen=True)
class Tool:
    """`run` makes of a form's values a record and the record in words."""

    name: str
    about: str
    form: type[BaseModel]
    result: TypeAdapter[Any]
    run: Callable[[Any], Awaitable[tuple[Any, str]]]

    def listed(self) -> types.Tool:
        """The tool with the JSON schemas of its input and output, as MCP lists it."""
        return types.Tool(
            name=self.name,
            description=f"{self.about} {QUOTED}",
            input_schema=self.form.model_json_schema(),
            output_schema=self.result.json_schema(mode="serialization"),
            annotations=READS,
        )

    async def call(self, arguments: dict[str, Any]) -> types.CallToolResult:
        """Run the tool; raises pydantic's ValidationError for arguments that its form refuses."""
        record, words = await self.run(self.form.model_validate(arguments))
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=words)]
        structured = self.result.dump_python(record, mode="json")
        return types.CallToolResult(content=content, structured_content=structured)


def _make_tools(service: Service, default_system: str) -> list[Tool]:
    async def search(form: QuestionForm) -> tuple[SearchReply, str]:
        found = await service.search(form.as_request(default_system))
        return fit_search(found, form.max_chars)

    async def answer(form: QuestionForm) -> tuple[AnswerReply, str]:
        written = await service.answer(form.as_request(default_system))
        try:
            cited = await collect_citations(service, cited_pmids(written))
        except StageLostError:
            # The answer stands without its reference list, which then says so.
            cited = []
        return await asyncio.to_thread(fit_answer, written, cited, form.max_chars)

    async def citation(form: CitationForm) -> tuple[WeighedCitation, str]:
        found = await service.citation(form.pmid)
        if found is None:
            raise InputError(f"PMID {form.pmid} is not in this index")
        weighed = WeighedCitation.of(found)
        return fit_reply(0, lambda _: (weighed, citation_words(found)), CITATION, form.max_chars)

    return [
        Tool(
            "search_pubmed",
            "Ranked PubMed citations for a question, with the passages that speak to it.",
            QuestionForm,
            TypeAdapter(SearchReply),
            search,
        ),
        Tool(
            "answer_question",
            "A short answer whose every sentence names the PMIDs that support it. The verdict "
            "is answered, mixed (sources disagree, both sides are quoted) or not_enough_evidence "
            "(nothing is stated, the nearest citations are given). A reference list ends it.",
            QuestionForm,
            TypeAdapter(AnswerReply),
            answer,
        ),
        Tool(
            "get_citation",
            "The whole PubMed record of one PMID: title, abstract, journal, headings, study "
            "design, and notices of a retraction, an expression of concern or a correction.",
            CitationForm,
            CITATION,
            citation,
        ),
    ]


def make_server(service: Service, default_system: str, more: Sequence[Tool] = ()) -> Server:
    """The protocol's side. What a caller can mend is an error of the tool, in one sentence."""
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
    """The ASGI side. As nothing outlives a request, each has a manager of its own."""

    def __init__(self, server: Server) -> None:
        self._server = server
        # It tells at INFO of each manager's begin and end, which is of each request.
        logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def add_mcp(api: FastAPI, service: Service, default_system: str, more: Sequence[Tool] = ()) -> None:
    """Add `/mcp` to `api` with the tools here and `more`."""
    endpoint = McpEndpoint(make_server(service, default_system, more))
    api.router.routes.append(Route(PATH, endpoint, methods=["POST"]))
