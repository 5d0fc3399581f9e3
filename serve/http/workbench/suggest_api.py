"""GET /v1/suggest and GET /v1/examples: what a person may type, before anything is asked."""

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
        description="What was typed of a name so far.",
    ),
]
Limit = Annotated[int, Query(ge=1, le=MAX_SUGGESTIONS, description="At most so many names.")]


class SuggestedName(BaseModel):
    """A name that begins as was typed.

    `concept` is the usual name of what it names, `citations` how many citations that is in: 0
    where the index only has the words of the name.
    """

    name: str
    concept: str
    kind: ConceptKind
    citations: int


class Suggestions(BaseModel):
    """Names of the vocabulary, those in the most citations first."""

    suggestions: list[SuggestedName]


class ExampleForm(BaseModel):
    """A question that this index can answer; `pmids` are citations in it that do."""

    question: str
    type: QuestionType
    pmids: list[int]


class Examples(BaseModel):
    """Questions of different types; none where the index holds the evidence of none."""

    examples: list[ExampleForm]


def add_suggest(api: FastAPI, service: Service) -> None:
    """Add the routes to `api`."""

    @api.get("/v1/suggest", responses=FORMED)
    async def suggest(prefix: Prefix, limit: Limit = MAX_SUGGESTIONS) -> Suggestions:
        """Names and MeSH terms that begin with `prefix`, by how frequent they are in the index."""
        found = await service.suggest(prefix, limit)
        names = [
            SuggestedName(name=s.name, concept=s.concept, kind=s.kind, citations=s.citations)
            for s in found
        ]
        return Suggestions(suggestions=names)

    @api.get("/v1/examples", responses=FORMED)
    async def examples() -> Examples:
        """Example questions whose evidence the served index holds, two of each type at most."""
        found = await service.examples()
        forms = [ExampleForm(question=e.question, type=e.type, pmids=list(e.pmids)) for e in found]
        return Examples(examples=forms)
