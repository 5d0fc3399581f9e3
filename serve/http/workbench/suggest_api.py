"""Routes GET /v1/suggest (autocompletion) and GET /v1/examples (example questions)."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query
from pydantic import BaseModel

from cluster.answers import QuestionType
from cluster.text.vocabulary import ConceptKind
from serve.http.problem_forms import KEYED, problems
from serve.http.service import Service

MAX_PREFIX = 100
MAX_SUGGESTIONS = 10
FORMED = problems(*KEYED, 422, 503)

Prefix = Annotated[
    str,
    Query(
        min_length=1,
        max_length=MAX_PREFIX,
        description="Beginning of a name.",
    ),
]
Limit = Annotated[int, Query(ge=1, le=MAX_SUGGESTIONS, description="Maximum number of names.")]


class SuggestedName(BaseModel):
    """Name that begins with the prefix.

    `concept` is the preferred name of its concept, and `citations` the number of citations with
    that concept: 0 if the index has only the words of the name.
    """

    name: str
    concept: str
    kind: ConceptKind
    citations: int


class Suggestions(BaseModel):
    """Names of the vocabulary, most frequent first."""

    suggestions: list[SuggestedName]


class ExampleForm(BaseModel):
    """Question that this index can answer; `pmids` are citations with the answer."""

    question: str
    type: QuestionType
    pmids: list[int]


class Examples(BaseModel):
    """Example questions of different types; empty if the index lacks their evidence."""

    examples: list[ExampleForm]


def add_suggest(api: FastAPI, service: Service) -> None:
    """Add the routes to `api`."""

    @api.get("/v1/suggest", responses=FORMED)
    async def suggest(prefix: Prefix, limit: Limit = MAX_SUGGESTIONS) -> Suggestions:
        """Return names and MeSH terms that begin with `prefix`, most frequent first."""
        found = await service.suggest(prefix, limit)
        names = [
            SuggestedName(name=s.name, concept=s.concept, kind=s.kind, citations=s.citations)
            for s in found
        ]
        return Suggestions(suggestions=names)

    @api.get("/v1/examples", responses=FORMED)
    async def examples() -> Examples:
        """Return example questions whose evidence is in the index, at most two of each type."""
        found = await service.examples()
        forms = [ExampleForm(question=e.question, type=e.type, pmids=list(e.pmids)) for e in found]
        return Examples(examples=forms)
