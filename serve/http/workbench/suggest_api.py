"""Routes GET /v1/suggest (autocompletion) and GET /v1/examples (example questions)."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import FastAPI, Query
from pydantic import BaseModel

from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.http.service import Service
from serve.question.example_questions import ExampleQuestion
from serve.question.understand_question import Suggestion

MAX_PREFIX = 100
MAX_SUGGESTIONS = 10
FORMED = problems(*KEY_STATUSES, 422, 503)

Prefix = Annotated[
    str, Query(min_length=1, max_length=MAX_PREFIX, description="Beginning of a name.")
]
Limit = Annotated[int, Query(ge=1, le=MAX_SUGGESTIONS, description="Maximum number of names.")]


class Suggestions(BaseModel):
    """Names of the vocabulary, most frequent first."""

    suggestions: list[Suggestion]


class Examples(BaseModel):
    """Example questions of different types; empty if the index lacks their evidence."""

    examples: list[ExampleQuestion]


def add_suggest(api: FastAPI, service: Service) -> None:
    """Add the routes to `api`."""

    @api.get("/v1/suggest", responses=FORMED)
    async def suggest(
        prefix: Prefix, limit: Limit = MAX_SUGGESTIONS, kind: Literal["any", "mesh"] = "any"
    ) -> Suggestions:
        """Return names and MeSH terms that begin with `prefix`, most frequent first.

        With `kind=mesh`, return only MeSH descriptors; `heading` is the value of `filters.mesh`.
        """
        found = await service.answerer.suggest(prefix, limit, kind == "mesh")
        return Suggestions(suggestions=list(found))

    @api.get("/v1/examples", responses=FORMED)
    async def examples() -> Examples:
        """Return example questions whose evidence is in the index, at most two of each type."""
        return Examples(examples=list(await service.answerer.examples()))
