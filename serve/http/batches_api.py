"""Batches over HTTP: a BioASQ file in, its run file later.

POST /v1/batches   GET /v1/batches   GET /v1/batches/{id}   DELETE /v1/batches/{id}
GET /v1/batches/{id}/run
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator

from cluster.records import Question
from serve.batches.jobs import BatchError, Job, new_job
from serve.formats.bioasq import as_questions
from serve.http.request_forms import known_system

MAX_QUESTIONS = 10_000


class Batches(Protocol):
    """The jobs of the graph; each call raises BatchError."""

    async def add(self, job: Job, questions: Sequence[Question]) -> dict[str, Any]: ...
    async def list(self) -> list[dict[str, Any]]: ...
    async def status(self, job_id: str) -> dict[str, Any]: ...
    async def cancel(self, job_id: str) -> dict[str, Any]: ...
    async def run(self, job_id: str) -> bytes: ...


class BatchRequest(BaseModel):
    """`questions` are rows of a BioASQ file. The same `id` with the same content is one batch."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "questions": [
                        {"id": "q1", "type": "yesno", "body": "Does metformin activate AMPK?"}
                    ],
                    "system": "citeray",
                }
            ]
        },
    )

    questions: Annotated[list[Any], Field(min_length=1, max_length=MAX_QUESTIONS)]
    system: str | None = None
    answers: bool = True
    format: Literal["bioasq"] = "bioasq"
    id: Annotated[str, Field(max_length=64)] = ""

    @field_validator("system")
    @classmethod
    def known(cls, value: str | None) -> str | None:
        return known_system(value)


def add_batches(api: FastAPI, batches: Batches, default_system: str) -> None:
    """Add the routes to `api`."""

    @api.exception_handler(BatchError)
    async def refused(_: Any, error: BatchError) -> JSONResponse:
        headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else None
        return JSONResponse({"error": error.message}, error.status, headers=headers)

    @api.post("/v1/batches", status_code=202)
    async def add(request: BatchRequest) -> dict[str, Any]:
        """Take a batch of questions; it is worked on after those that came before."""
        questions = as_questions(request.questions, "questions")
        system = request.system or default_system
        job = new_job(questions, system, request.answers, request.id)
        return await batches.add(job, questions)

    @api.get("/v1/batches")
    async def list_all() -> dict[str, Any]:
        """All batches, in the order in which they came."""
        return {"batches": await batches.list()}

    @api.get("/v1/batches/{job_id}")
    async def status(job_id: str) -> dict[str, Any]:
        """How far a batch is."""
        return await batches.status(job_id)

    @api.delete("/v1/batches/{job_id}")
    async def cancel(job_id: str) -> dict[str, Any]:
        """Ask no more of its questions."""
        return await batches.cancel(job_id)

    @api.get("/v1/batches/{job_id}/run", response_class=Response)
    async def run(job_id: str) -> Response:
        """The run file, once the batch is done."""
        name = f'attachment; filename="run-{job_id}.json"'
        headers = {"Content-Disposition": name}
        return Response(await batches.run(job_id), media_type="application/json", headers=headers)
