"""Batches over HTTP: submit the questions of a BioASQ file, fetch the run file later.

POST /v1/batches   GET /v1/batches   GET /v1/batches/{id}   DELETE /v1/batches/{id}
GET /v1/batches/{id}/run   GET /v1/batches/{id}/results
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import FastAPI, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool
from pydantic.config import JsonDict

from cluster.answers import QUESTION_TYPES
from serve.batches.jobs import State, new_job
from serve.batches.serve_jobs import ServedBatches
from serve.contracts.filter_form import FilterForm
from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.contracts.request_forms import SystemName
from serve.formats.bioasq import MAX_BODY_CHARS, MAX_ID_CHARS, as_questions
from serve.http.middleware.request_log import asker

MAX_QUESTIONS = 10_000
JobId = Annotated[str, Path(examples=["b1"])]
After = Annotated[int, Query(ge=0, le=MAX_QUESTIONS, description="Number of entries to skip.")]
Count = Annotated[int, Query(ge=1, le=100, description="Maximum number of entries.")]


# JSON schema for the documentation only: `as_questions` validates the questions.
QUESTION = {
    "type": "object",
    "required": ["id", "type", "body"],
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS},
        "type": {"enum": list(QUESTION_TYPES)},
        "body": {"type": "string", "minLength": 1, "maxLength": MAX_BODY_CHARS},
    },
}


EXAMPLE: JsonDict = {
    "questions": [{"id": "q1", "type": "yesno", "body": "Does metformin activate AMPK?"}],
    "system": "citeray",
}


class BatchRequest(BaseModel):
    """Batch of questions in BioASQ's form. The same `id` with the same content is one batch.

    `filters` restrict the citations of every question, as in `/v1/answer`.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    questions: Annotated[
        list[Any],
        Field(min_length=1, max_length=MAX_QUESTIONS, json_schema_extra={"items": QUESTION}),
    ]
    system: SystemName | None = None
    answers: StrictBool = True
    format: Literal["bioasq"] = "bioasq"
    id: Annotated[str, Field(max_length=64)] = ""
    filters: FilterForm = FilterForm()


class BatchFigures(BaseModel):
    """Progress of a batch. Times are ISO 8601 in UTC, or None if not reached yet.

    `verdicts` counts the answers by verdict. BioASQ's format forces a choice, so the run has the
    best guess for a question without enough evidence; its field `verdict` says so.
    """

    id: str
    system: str
    answers: bool
    state: State
    total: int
    done: int
    failed_count: int
    degraded: dict[str, int]
    verdicts: dict[str, int]
    index_version: str
    error: str
    eta_s: float | None
    created: str
    started: str | None
    ended: str | None


class Batch(BatchFigures):
    """Batch with its first failed questions, by id, each with the reason."""

    failed: dict[str, str]


class BatchList(BaseModel):
    """Batches submitted with this key, oldest first."""

    batches: list[BatchFigures]


class BatchResults(BaseModel):
    """Entries of the run.

    They are in the order of completion while the batch runs, and in the order of its questions
    once it is done: read them again from `after` 0.
    """

    results: list[dict[str, Any]]


ADDED = {202: {"model": Batch}, **problems(*KEY_STATUSES, 409, 422, 503, 507)}
LISTED = {200: {"model": BatchList}, **problems(*KEY_STATUSES, 503)}
ONE = problems(*KEY_STATUSES, 404, 422, 503)
TOLD = {200: {"model": Batch}, **ONE}
RUN = {
    200: {"content": {"application/json": {"schema": {"type": "object"}}}},
    **ONE,
    **problems(409),
}


def add_batches(api: FastAPI, batches: ServedBatches, default_system: str) -> None:
    """Add the routes to `api`."""

    @api.post("/v1/batches", status_code=202, responses=ADDED)
    async def add(request: BatchRequest) -> dict[str, Any]:
        """Queue a batch of questions behind those submitted earlier."""
        questions = as_questions(request.questions, "questions")
        system = request.system or default_system
        filters = request.filters.as_filters()
        job = new_job(questions, system, request.answers, request.id, asker(), filters)
        return await batches.add(job, questions)

    @api.get("/v1/batches", responses=LISTED)
    async def list_all() -> dict[str, Any]:
        """Return the batches submitted with this key, oldest first."""
        return {"batches": await batches.list(asker())}

    @api.get("/v1/batches/{job_id}", responses=TOLD)
    async def status(job_id: JobId) -> dict[str, Any]:
        """Return the progress of a batch."""
        return await batches.status(job_id, asker())

    @api.delete("/v1/batches/{job_id}", responses=TOLD)
    async def cancel(job_id: JobId) -> dict[str, Any]:
        """Cancel a batch; delete a finished one with its run."""
        return await batches.cancel(job_id, asker())

    @api.get("/v1/batches/{job_id}/results", responses=ONE)
    async def results(job_id: JobId, after: After = 0, count: Count = 20) -> BatchResults:
        """Return the answers so far, each as in the run file."""
        return BatchResults(results=list(await batches.results(job_id, asker(), after, count)))

    @api.get("/v1/batches/{job_id}/run", response_class=Response, responses=RUN)
    async def run(job_id: JobId) -> Response:
        """Return the run file of a finished batch."""
        headers = {"Content-Disposition": f'attachment; filename="run-{job_id}.json"'}
        content = await batches.run(job_id, asker())
        return Response(content, media_type="application/json", headers=headers)
