"""FastAPI application: routes, exception handlers and middleware.

POST /v1/answer   POST /v1/search   GET /v1/citations/{pmid}
GET /v1/references and other routes for references and documents (workbench/references_api.py)
POST /v1/chat/completions   GET /v1/models (OpenAI's form)   POST /mcp (tools for models)
GET /healthz (this process)   GET /readyz (versions, coverage, stages)   GET /metrics
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route

from cluster.answers import Answer, SearchResult
from cluster.appraisal import WeighedCitation
from cluster.errors import InputError, RefusedError
from cluster.settings.stages.serving import ServeSettings
from serve.batches.serve_jobs import ServedBatches
from serve.contracts.problem_forms import (
    KEY_STATUSES,
    MIDDLEWARE_STATUSES,
    busy_problem,
    events,
    problem,
    problems,
)
from serve.contracts.readiness import Readiness
from serve.contracts.request_forms import (
    AnswerRequest,
    SearchRequest,
    explain_problems,
    explain_unreadable,
    field_errors,
)
from serve.contracts.stage_watch import StageLostError
from serve.http.batches_api import add_batches
from serve.http.boolean_api import add_boolean, boolean_tool
from serve.http.documented import DocumentedAPI
from serve.http.event_stream import NAMES, as_failure, event_stream
from serve.http.mcp_tools import add_mcp
from serve.http.middleware.admission import Admission
from serve.http.middleware.guard import Guard
from serve.http.middleware.head_requests import HeadAsGet
from serve.http.middleware.request_log import Meters
from serve.http.openai.openai_errors import CHAT, OpenAIErrors, explain_chat_problems
from serve.http.openai.openai_form import add_openai_form
from serve.http.serve_page import add_page, is_missing_page, missing_page
from serve.http.service import Graph, Service, require_ready
from serve.http.strategy_api import add_strategy, strategy_tool
from serve.http.workbench.answers_api import (
    add_answers,
    finished,
    store_answer,
    store_last,
    take_recent,
)
from serve.http.workbench.batch_references import add_batch_references
from serve.http.workbench.citations_api import add_citations
from serve.http.workbench.feedback_api import add_feedback
from serve.http.workbench.reference_tools import reference_tools
from serve.http.workbench.references_api import PathPmid, add_references
from serve.http.workbench.suggest_api import add_suggest
from serve.http.workbench.systems_api import add_systems
from serve.http.workbench.watches_api import add_watches
from serve.saved.stores import Saved

RETRY_AFTER_S = 5
FIGURES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **problems(*KEY_STATUSES),
}
ASKED = problems(*KEY_STATUSES, 422, 503)


def methods_at(path: str, routes: Sequence[BaseRoute]) -> str:
    """Return the `Allow` header for `path`: the methods of all routes that match it.

    Starlette itself names only the methods of the first route that matches. A path without a route
    belongs to a file of the web page, which allows GET and HEAD.
    """
    here = [r for r in routes if isinstance(r, Route) and r.path_regex.match(path)]
    methods = {method for route in here for method in route.methods or ()} or {"GET"}
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def create_api(
    graph: Graph,
    settings: ServeSettings,
    *,
    admission: Admission,
    meters: Meters | None = None,
    batches: ServedBatches | None = None,
    saved: Saved | None = None,
) -> FastAPI:
    """Return the FastAPI application for `graph`, which may run in-process or on Ray.

    Without `batches` the batch routes are left out; without `saved`, those for stored answers,
    feedback and saved questions. Raise InputError for malformed API keys in the environment.
    """
    http = settings.http
    meters = meters or Meters()
    default_system = settings.system
    service = Service(graph, meters, log_questions=http.log_questions)
    api = _bare_api(settings, admission, meters)
    _add_handlers(api)
    _add_routes(api, service, default_system, saved)
    add_references(api, service, default_system)
    add_openai_form(api, service)
    add_suggest(api, service)
    add_page(api, keeps=saved is not None)
    add_systems(api, service, default_system)
    add_citations(api, service)
    add_boolean(api, service)
    if batches is not None:
        add_batches(api, batches, default_system)
        add_batch_references(api, batches, service)
    if saved is not None:
        add_answers(api, service, saved, default_system)
        add_feedback(api, saved)
        add_watches(api, service, saved, default_system)
    add_strategy(api, service, default_system, saved)
    tools = [
        *reference_tools(service, default_system),
        boolean_tool(service),
        strategy_tool(service, default_system),
    ]
    add_mcp(api, service, default_system, tools)

    @api.get("/metrics", response_class=Response, responses=FIGURES)
    async def metrics() -> Response:
        """Return the metrics of the graph and of Ray in Prometheus' text format."""
        return Response(await graph.metrics(), media_type=CONTENT_TYPE_LATEST)

    return api


def _bare_api(settings: ServeSettings, admission: Admission, meters: Meters) -> DocumentedAPI:
    http = settings.http
    api = DocumentedAPI(
        title="CiteRay",
        description="Cited answers to biomedical questions from PubMed.",
        responses=problems(*MIDDLEWARE_STATUSES),
        # FastAPI's own documentation loads scripts from another host; serve_page replaces it.
        docs_url=None,
        redoc_url=None,
        # A redirect would go to the host in the request's `Host` header.
        redirect_slashes=False,
    )
    api.add_middleware(HeadAsGet)
    hosts = (*http.hosts, settings.host)
    api.add_middleware(Guard, settings=http, admission=admission, meters=meters, hosts=hosts)
    api.add_middleware(OpenAIErrors)
    if http.cors_origins:
        api.add_middleware(
            CORSMiddleware,
            allow_origins=list(http.cors_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
            expose_headers=["Retry-After", "X-Request-ID"],
        )
    return api


def _add_handlers(api: FastAPI) -> None:
    """Register exception handlers that reply with a status and a one-sentence problem."""

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        if request.scope["path"] == CHAT:
            return explain_chat_problems(error.errors())
        return problem(422, explain_problems(error.errors()), field_errors(error.errors()))

    @api.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:
            status = 400 if request.scope["path"] == CHAT else 422
            return problem(status, explain_unreadable(error.__cause__))
        path, accept = request.scope["path"], request.headers.get("accept", "")
        if error.status_code == 404 and is_missing_page(path, accept):
            return missing_page()
        said = f"{error.detail}; /docs lists what there is"
        allowed = {"Allow": methods_at(request.scope["path"], api.routes)}
        return problem(error.status_code, said, headers=allowed if error.status_code == 405 else {})

    @api.exception_handler(RefusedError)
    async def unmet(_: Request, error: RefusedError) -> JSONResponse:
        return busy_problem(error.status, error.message, error.retry_after_s)

    @api.exception_handler(InputError)
    @api.exception_handler(StageLostError)
    @api.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> JSONResponse:
        status, said = as_failure(error)
        return busy_problem(status, said, RETRY_AFTER_S if status == 503 else 0)


def _add_routes(api: FastAPI, service: Service, default_system: str, saved: Saved | None) -> None:
    @api.post(
        "/v1/answer", response_model=Answer, responses={200: {"content": events(NAMES)}, **ASKED}
    )
    async def answer(request: AnswerRequest) -> Any:
        """Return an answer in which every sentence names the PMIDs that support it.

        `verdict` is `answered`, `mixed` (the sources disagree) or `not_enough_evidence` (the
        answer has no sentences, and `citations` are the nearest ones).
        """
        require_ready(service)
        asked = request.as_request(default_system)
        recent = take_recent(saved, request, asked)
        if request.stream:
            events = finished(recent) if recent else service.answer_events(asked)
            return event_stream(store_last(saved, events, request, asked))
        written = recent or service.record(await service.answerer.answer(asked))
        return await store_answer(saved, written, request, asked)

    @api.post("/v1/search", responses=ASKED)
    async def search(request: SearchRequest) -> SearchResult:
        """Return ranked citations and the passages relevant to the question."""
        require_ready(service)
        return service.record(await service.answerer.search(request.as_request(default_system)))

    cited = {**ASKED, **problems(404)}

    @api.get("/v1/citations/{pmid}", response_model=WeighedCitation, responses=cited)
    async def citation(pmid: PathPmid) -> Any:
        """Return the record of one PMID with its study design and any retraction notices."""
        require_ready(service)
        found = await service.answerer.citation(pmid)
        if found is None:
            return problem(404, f"PMID {pmid} is not in this index")
        return WeighedCitation.of(found)

    @api.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Return 200 while this process is alive."""
        return {"status": "alive"}

    @api.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
    async def readyz() -> Any:
        """Return 200 if every stage is ready, and 503 while one is loading or lost."""
        readiness = await service.graph.readiness()
        return JSONResponse(readiness.model_dump(), 200 if readiness.ready else 503)
