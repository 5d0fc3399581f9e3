"""Common client interface for a running endpoint and for the graph in this process.

Requests and responses are the JSON of `/v1/search` and `/v1/answer`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.console import Console

from cluster.answers import Answer
from cluster.errors import CiteRayError, InputError
from cluster.http_clients import open_client
from cluster.problem_words import problem_words
from cluster.settings.presets import name_systems
from cluster.settings.settings import Settings
from cluster.settings.store_digests import store_digests
from serve.client.call_endpoint import Endpoint
from serve.contracts.request_forms import AnswerRequest, SearchRequest, explain_problems
from serve.http.boolean_forms import BooleanExport, BooleanRequest, export_text
from serve.http.service import Readiness
from serve.http.strategy_api import StrategyRequest, strategy_reply
from serve.pipeline.boolean_reply import match_query

if TYPE_CHECKING:
    from serve.llm.model_roles import ModelRoles

T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)
Reply = dict[str, Any]
# In seconds; longer than /readyz takes to respond while a stage is lost.
PROBE_TIMEOUT = httpx.Timeout(8.0, connect=2.0)
ANSWER = TypeAdapter(Answer)


class Client(ABC):
    """Client for searches and answers; all methods block and are thread-safe."""

    @abstractmethod
    def post(self, path: str, request: Mapping[str, Any]) -> Reply:
        """Return the response of the route `path`; raise InputError for an invalid request."""

    @abstractmethod
    def export(self, request: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the file of `/v1/search/boolean/export` in parts; raise InputError."""

    def search(self, request: Mapping[str, Any]) -> Reply:
        """Return the response of `/v1/search`; raise InputError for an invalid request."""
        return self.post("/v1/search", request)

    def answer(self, request: Mapping[str, Any]) -> Reply:
        """Return the response of `/v1/answer`; raise InputError for an invalid request."""
        return self.post("/v1/answer", request)

    def strategy(self, request: Mapping[str, Any]) -> Reply:
        """Return the response of `/v1/strategy`; raise InputError for an invalid request."""
        return self.post("/v1/strategy", request)

    def boolean(self, request: Mapping[str, Any]) -> Reply:
        """Return the response of `/v1/search/boolean`; raise InputError for an invalid query."""
        return self.post("/v1/search/boolean", request)

    @abstractmethod
    def close(self) -> None:
        """Close the connections, or the event loop."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def as_answer(reply: Mapping[str, Any]) -> Answer:
    """Return the response as a record; raise CiteRayError if it is of another version."""
    try:
        return ANSWER.validate_python(reply)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "the reply"
        raise CiteRayError(
            f"/v1/answer: the reply is not an answer of this version of CiteRay ({place}: "
            f"{problem_words(problem)}); run the same version at both ends"
        ) from error


class HttpClient(Client):
    """Client of a running endpoint.

    Raises InputError if the request is at fault, and CiteRayError for any other failure.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self._endpoint = Endpoint(url, timeout_s)

    def post(self, path: str, request: Mapping[str, Any]) -> Reply:
        """Return the response of the route `path`."""
        try:
            reply: Reply = json.loads(self._endpoint.read("POST", path, dict(request)))
        except ValueError as error:
            raise CiteRayError(f"{path}: the reply is not JSON; is this CiteRay?") from error
        return reply

    def export(self, request: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the file of `/v1/search/boolean/export` in parts, without a time limit."""
        with self._endpoint.chunks("POST", "/v1/search/boolean/export", dict(request)) as parts:
            yield from parts

    def strategy_of(self, answer_id: str, max_hits: int) -> Reply:
        """Return the strategy of a stored answer; raise the same errors as the other calls."""
        place = f"/v1/answers/{quote(answer_id, safe='')}/strategy"
        return self.post(f"{place}?max_hits={max_hits}", {})

    def batch_run(self, job_id: str) -> bytes:
        """Return the run file of a finished batch; raise the same errors as the other calls."""
        return self._endpoint.read("GET", f"/v1/batches/{quote(job_id, safe='')}/run")

    def close(self) -> None:
        """Close all connections."""
        self._endpoint.close()


class OwnLoop:
    """Event loop in a background thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and return its result; thread-safe."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Close the loop's asynchronous generators, the loop and the thread."""
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class LocalClient(Client):
    """Client of the graph in this process, on an event loop in a background thread.

    `models` defaults to the models that the settings name by URL.
    """

    def __init__(self, settings: Settings, models: ModelRoles | None = None) -> None:
        from serve.graph.local_graph import local_answerer
        from serve.llm.model_roles import find_models

        name_systems(settings.serve.systems)
        self._system = settings.serve.system
        self._answerer = local_answerer(settings, models or find_models(settings))
        self._loop = OwnLoop()

    def post(self, path: str, request: Mapping[str, Any]) -> Reply:
        """Return the response of the route `path`, without HTTP."""
        return asdict(self._loop.run(self._reply(path, request)))

    async def _reply(self, path: str, request: Mapping[str, Any]) -> Any:
        answerer, system = self._answerer, self._system
        match path:
            case "/v1/search":
                return await answerer.search(_checked(SearchRequest, request).as_request(system))
            case "/v1/answer":
                return await answerer.answer(_checked(AnswerRequest, request).as_request(system))
            case "/v1/strategy":
                form = _checked(StrategyRequest, request)
                return await strategy_reply(answerer, form.as_request(system), form.max_hits)
            case _:
                asked = _checked(BooleanRequest, request)
                hits = await match_query(answerer, asked.query)
                return await hits.page(asked.limit, asked.offset)

    def export(self, request: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the file of `/v1/search/boolean/export` in parts; raise InputError."""
        asked = _checked(BooleanExport, request)
        hits = self._loop.run(match_query(self._answerer, asked.query))
        hits.check_complete()
        parts = export_text(hits, asked.format)
        while (part := self._loop.run(_next_of(parts))) is not None:
            yield part.encode()

    def close(self) -> None:
        """Close the event loop and its thread."""
        self._loop.close()


async def _next_of(parts: AsyncIterator[str]) -> str | None:
    return await anext(parts, None)


def _checked(form: type[R], request: Mapping[str, Any]) -> R:
    try:
        return form.model_validate(dict(request))
    except ValidationError as error:
        raise InputError(explain_problems(error.errors())) from error


def endpoint_url(settings: Settings) -> str:
    """Return the local URL of the endpoint; 127.0.0.1 if it listens on all addresses."""
    host = settings.serve.host
    reachable = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return f"http://{f'[{reachable}]' if ':' in reachable else reachable}:{settings.serve.port}"


def running_client(settings: Settings) -> HttpClient | None:
    """Return a client of the endpoint at serve.host:serve.port, or None if it cannot answer.

    An endpoint with a lost stage is accepted; its answers list what they lack in `degraded`.
    """
    found = _readiness(settings)
    if found is None or not (found.ready or "loading" not in found.stages.values()):
        return None
    return HttpClient(endpoint_url(settings), timeout_s=settings.serve.request_deadline_s + 10)


def _readiness(settings: Settings) -> Readiness | None:
    """Return the state of the endpoint at serve.host:serve.port; None if there is none."""
    try:
        with open_client(timeout=PROBE_TIMEOUT) as http:
            return Readiness.model_validate_json(
                http.get(f"{endpoint_url(settings)}/readyz").content
            )
    except (httpx.HTTPError, ValidationError):
        return None


def check_same_store(settings: Settings, setting: str) -> None:
    """Raise InputError if a running endpoint uses another store than `setting` names here.

    `setting` is `index.path` or `serve.saved.url`. An endpoint of an earlier release, which does
    not report its stores, is not compared.
    """
    found = _readiness(settings)
    served = found.stores.get(setting) if found else None
    if served is not None and served != store_digests(settings)[setting]:
        raise InputError(
            f"{setting}: the endpoint at {endpoint_url(settings)} uses another one; run this "
            "command with the endpoint's settings and in its folder, or set serve.port to that of "
            "another endpoint"
        )


class ServedClient(HttpClient):
    """Client that runs the Ray Serve graph for the duration of a `with` block."""

    def __init__(self, settings: Settings, log: Console) -> None:
        super().__init__(endpoint_url(settings), settings.serve.request_deadline_s + 10)
        self._settings = settings
        self._log = log
        self._session = ExitStack()

    def __enter__(self) -> Self:
        from serve.client.run_graph import running_graph

        self._session.enter_context(running_graph(self._settings, self._log))
        return self

    def __exit__(self, *failure: object) -> None:
        super().__exit__(*failure)
        self._session.close()


def local_client(settings: Settings, log: Console, *, model: bool) -> Client:
    """Return a client of a local graph; on Ray Serve if `model` is set and models are served."""
    from serve.llm.model_roles import serves_models

    if model and serves_models(settings):
        return ServedClient(settings, log)
    return LocalClient(settings)
