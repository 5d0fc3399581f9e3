"""The HTTP form of the question's path: validation, status codes, readiness.

POST /v1/answer   POST /v1/search   GET /v1/citations/{pmid}
GET /healthz (this process)   GET /readyz (versions, coverage, stages)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Protocol

from fastapi import FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, field_validator

from cluster.errors import InputError
from cluster.records import Answer, Citation, Question, QuestionType, SearchResult
from cluster.settings import SystemSettings, load_system, system_names
from serve.watch_stages import StageLostError

MAX_QUESTION_CHARACTERS = 2000
MAX_CITATIONS = 100
MAX_PMID = 2**53
RETRY_AFTER_S = 5


class Readiness(BaseModel):
    """`coverage` is shards answering of all, as "2/2"; `stages` says "ready" or "loading".

    `versions` is what one replica of each stage that reads the index serves now, and
    `index_version` the oldest among the shards'; `refused` says of a stage why it does not
    serve what is published.
    """

    ready: bool
    index_version: str
    last_source: str
    coverage: str
    citations: int
    models: dict[str, str]
    stages: dict[str, str]
    versions: dict[str, str]
    refused: dict[str, str]


class Service(Protocol):
    """What the gateway needs of the graph behind it."""

    async def search(
        self, question: Question, system: SystemSettings, limit: int, snippets: bool
    ) -> SearchResult: ...
    async def answer(
        self, question: Question, system: SystemSettings, limit: int, snippets: bool
    ) -> Answer: ...
    async def citation(self, pmid: int) -> Citation | None: ...
    def loading(self) -> list[str]:
        """The stages that are not ready yet."""
        ...

    async def readiness(self) -> Readiness: ...


class SearchRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"question": "Does metformin activate AMPK?", "k": 5}]},
    )

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARACTERS)]
    system: str | None = None
    k: Annotated[int, Field(ge=1, le=MAX_CITATIONS)] = 10
    id: Annotated[str, Field(max_length=200)] = ""
    type: QuestionType = "unknown"
    snippets: bool = False

    @field_validator("question")
    @classmethod
    def not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty; ask a question")
        return value.strip()

    @field_validator("system")
    @classmethod
    def known(cls, value: str | None) -> str | None:
        if value is not None and value not in system_names():
            raise ValueError(f"unknown; there are: {', '.join(system_names())}")
        return value

    def as_question(self) -> Question:
        return Question(self.id, self.question, self.type)


class AnswerRequest(SearchRequest):
    pass


def explain_problems(problems: Sequence[Any]) -> str:
    """One sentence naming each bad field, what is wrong and what was given."""
    parts = []
    for problem in problems:
        place = ".".join(str(p) for p in problem["loc"] if p != "body") or "body"
        message = str(problem["msg"]).removeprefix("Value error, ")
        given = repr(problem.get("input"))
        shown = given if len(given) <= 60 else given[:57] + "..."
        parts.append(f"{place}: {message} (got {shown})")
    return "; ".join(parts)


def _problem(status: int, message: str, **headers: str) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers=headers)


def create_api(service: Service, default_system: str) -> FastAPI:
    """The FastAPI application over `service`, which may run in-process or on Ray."""
    api = FastAPI(
        title="CiteRay",
        description="Cited answers to biomedical questions from PubMed.",
    )

    @api.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return _problem(422, explain_problems(error.errors()))

    @api.exception_handler(InputError)
    async def bad_input(_: Request, error: InputError) -> JSONResponse:
        return _problem(422, str(error))

    @api.exception_handler(StageLostError)
    async def lost(_: Request, error: StageLostError) -> JSONResponse:
        return _problem(503, str(error), **{"Retry-After": str(RETRY_AFTER_S)})

    async def require_ready() -> None:
        if loading := service.loading():
            raise StageLostError(f"still loading: {', '.join(loading)}; try again in a moment")

    @api.post("/v1/answer")
    async def answer(request: AnswerRequest) -> Answer:
        """An answer whose every sentence names the PMIDs that support it."""
        await require_ready()
        system = load_system(request.system or default_system)
        return await service.answer(request.as_question(), system, request.k, request.snippets)

    @api.post("/v1/search")
    async def search(request: SearchRequest) -> SearchResult:
        """Ranked citations and the passages that speak to the question."""
        await require_ready()
        system = load_system(request.system or default_system)
        return await service.search(request.as_question(), system, request.k, request.snippets)

    @api.get("/v1/citations/{pmid}", response_model=Citation)
    async def citation(pmid: Annotated[int, Path(ge=1, le=MAX_PMID)]) -> Any:
        """The whole record of one PMID."""
        await require_ready()
        found = await service.citation(pmid)
        if found is None:
            return _problem(404, f"PMID {pmid} is not in this index")
        return found

    @api.get("/healthz")
    async def healthz() -> dict[str, str]:
        """This process is alive."""
        return {"status": "alive"}

    @api.get("/readyz", response_model=Readiness)
    async def readyz() -> Any:
        """200 once every stage can serve, 503 before."""
        readiness = await service.readiness()
        status = 200 if readiness.ready else 503
        return JSONResponse(readiness.model_dump(), status)

    return api
