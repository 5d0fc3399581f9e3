"""The HTTP form of the question's path: validation, status codes, readiness.

POST /v1/answer   POST /v1/search   GET /v1/citations/{pmid}
GET /healthz (this process)   GET /readyz (versions, coverage, stages)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Protocol

from fastapi import FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from cluster.errors import InputError
from cluster.records import (
    Answer,
    Citation,
    Passage,
    Question,
    QuestionType,
    SearchResult,
    SectionName,
)
from cluster.settings import load_system, system_names
from cluster.system_settings import SystemSettings
from serve.watch_stages import StageLostError

MAX_QUESTION_CHARACTERS = 2000
MAX_CITATIONS = 100
MAX_PMID = 2**53
MAX_EXCLUDED = 1000
MAX_GIVEN = 200
MAX_GIVEN_CHARACTERS = 5000
MAX_PROBLEMS = 5
RETRY_AFTER_S = 5

Pmid = Annotated[int, Field(ge=1, le=MAX_PMID)]
Offset = Annotated[int, Field(ge=0)]


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
    exclude: Annotated[tuple[Pmid, ...], Field(max_length=MAX_EXCLUDED)] = ()

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
        return Question(self.id, self.question, self.type, self.exclude)


class GivenPassage(BaseModel):
    """A passage in the form of a reply's snippets. Its text counts, whatever its length."""

    model_config = ConfigDict(extra="forbid")

    pmid: Pmid
    section: SectionName
    begin: Offset
    end: Offset
    text: Annotated[str, Field(max_length=MAX_GIVEN_CHARACTERS)]

    @field_validator("end")
    @classmethod
    def not_before_begin(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("begin", 0):
            raise ValueError("is before begin")
        return value

    @field_validator("text")
    @classmethod
    def says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty; leave the passage out")
        return value

    def as_passage(self) -> Passage:
        return Passage(self.pmid, self.section, self.begin, self.end, self.text)


class AnswerRequest(SearchRequest):
    """With `evidence` the answer rests on these passages alone, and nothing is searched for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"question": "Does metformin activate AMPK?", "k": 5},
                {
                    "question": "Does metformin activate AMPK?",
                    "type": "yesno",
                    "evidence": [
                        {
                            "pmid": 90000001,
                            "section": "abstract",
                            "begin": 0,
                            "end": 44,
                            "text": "Metformin activates AMPK in rat hepatocytes.",
                        }
                    ],
                },
            ]
        },
    )

    evidence: Annotated[tuple[GivenPassage, ...], Field(max_length=MAX_GIVEN)] = ()

    def as_question(self) -> Question:
        given = tuple(passage.as_passage() for passage in self.evidence)
        return replace(super().as_question(), given=given)


def explain_problems(problems: Sequence[Any]) -> str:
    """One sentence naming each bad field, what is wrong and what was given.

    Of more than `MAX_PROBLEMS` it names the first and counts the others.
    """
    parts = []
    for problem in problems[:MAX_PROBLEMS]:
        place = ".".join(str(p) for p in problem["loc"] if p != "body") or "body"
        message = str(problem["msg"]).removeprefix("Value error, ")
        given = repr(problem.get("input"))
        shown = given if len(given) <= 60 else given[:57] + "..."
        parts.append(f"{place}: {message} (got {shown})")
    if more := len(problems[MAX_PROBLEMS:]):
        parts.append(f"and {more} more")
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
