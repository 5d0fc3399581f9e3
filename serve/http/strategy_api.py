"""Search strategies over HTTP and as an MCP tool.

POST /v1/strategy   POST /v1/answers/{answer_id}/strategy
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Query
from pydantic import ConfigDict, Field, TypeAdapter

from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.contracts.request import Request
from serve.contracts.request_forms import SearchRequest
from serve.http.mcp_tools import Tool
from serve.http.service import Service, require_ready
from serve.http.workbench.answers_api import AnswerId, repeat_request
from serve.pipeline.answer_question import QuestionAnswerer
from serve.saved.stores import Saved
from serve.strategy.export_strategy import STRATEGY_FORMATS, StrategyFormat, export_strategy
from serve.strategy.make_strategy import DEFAULT_MAX_HITS, make_strategy
from serve.strategy.strategy_records import Strategy

MOST_MAX_HITS = 1_000_000
MADE = problems(*KEY_STATUSES, 422, 503)
EXAMPLE: dict[str, Any] = {"question": "Does metformin activate AMPK?", "max_hits": 500}


def _keep_few(schema: dict[str, Any]) -> None:
    """Remove from the schema the search options that do not affect a strategy."""
    for name in ("k", "id", "type", "snippets", "sort", "budget_ms"):
        schema["properties"].pop(name, None)


class StrategyRequest(SearchRequest):
    """Biomedical question, with filters that become limits of the strategy.

    `max_hits` is the number of hits to stay below: a larger number widens the strategy.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    max_hits: Annotated[int, Field(ge=1, le=MOST_MAX_HITS, strict=True)] = DEFAULT_MAX_HITS


class StrategyForm(StrategyRequest):
    """Biomedical question to make a PubMed search strategy from."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_keep_few)


@dataclass(frozen=True, slots=True)
class StrategyReply:
    """A strategy, and its text in each format: text, pubmed, ovid and prisma-s."""

    strategy: Strategy
    texts: Mapping[StrategyFormat, str]


async def strategy_reply(
    answerer: QuestionAnswerer, request: Request, max_hits: int
) -> StrategyReply:
    """Return the strategy in all formats; raises the errors of `make_strategy`."""
    made = await make_strategy(answerer, request, max_hits)
    return StrategyReply(made, {form: export_strategy(made, form) for form in STRATEGY_FORMATS})


def add_strategy(
    api: FastAPI, service: Service, default_system: str, saved: Saved | None = None
) -> None:
    """Add the routes to `api`; the one for stored answers only with `saved`."""

    @api.post("/v1/strategy", responses=MADE)
    async def strategy(request: StrategyRequest) -> StrategyReply:
        """Return a Boolean PubMed strategy for a question, with its hits, recall and precision.

        Recall and precision refer to the best citations of the semantic search for the question.
        """
        require_ready(service)
        asked = request.as_request(default_system)
        return await strategy_reply(service.answerer, asked, request.max_hits)

    if saved is None:
        return

    @api.post("/v1/answers/{answer_id}/strategy", responses={**MADE, **problems(404)})
    async def strategy_of_answer(
        answer_id: AnswerId,
        max_hits: Annotated[int, Query(ge=1, le=MOST_MAX_HITS)] = DEFAULT_MAX_HITS,
    ) -> StrategyReply:
        """Return a strategy for the question of a stored answer, with the same filters."""
        require_ready(service)
        stored = await asyncio.to_thread(saved.answers.get, answer_id)
        asked = repeat_request(stored.asked, default_system)
        return await strategy_reply(service.answerer, asked, max_hits)


def strategy_tool(service: Service, default_system: str) -> Tool:
    """Return the MCP tool that makes strategies."""

    async def make(form: StrategyForm) -> tuple[Strategy, str]:
        asked = form.as_request(default_system)
        reply = await strategy_reply(service.answerer, asked, form.max_hits)
        return reply.strategy, reply.texts["text"]

    return Tool(
        "search_strategy",
        "Make a Boolean PubMed search strategy from a question: blocks of MeSH headings and [tiab] "
        "words, with hits, recall and what each block loses.",
        StrategyForm,
        TypeAdapter(Strategy),
        make,
    )
