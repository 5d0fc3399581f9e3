"""One face for the running endpoint and for the graph in this process.

Requests and replies are the JSON of `/v1/search` and `/v1/answer`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from cluster.answers import Answer
from cluster.errors import CiteRayError, InputError
from cluster.http_clients import open_client
from cluster.settings.presets import name_systems
from cluster.settings.settings import Settings
from serve.client.call_endpoint import Endpoint
from serve.http.request_forms import AnswerRequest, SearchRequest, explain_problems

if TYPE_CHECKING:
    from serve.llm.model_roles import ModelRoles

T = TypeVar("T")
R = TypeVar("R", bound=SearchRequest)
Reply = dict[str, Any]
# Longer than an endpoint waits for the word of a lost stage.
PROBE_TIMEOUT = httpx.Timeout(8.0, connect=2.0)
ANSWER = TypeAdapter(Answer)


class Client(Protocol):
    """Both calls are safe from several threads at once."""

    def search(self, request: Mapping[str, Any]) -> Reply:
        """Reply of `/v1/search` to `request`; blocks; raises InputError for an invalid request."""
        ...

    def answer(self, request: Mapping[str, Any]) -> Reply:
        """Reply of `/v1/answer` to `request`; blocks; raises InputError for an invalid request."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


def as_answer(reply: Mapping[str, Any]) -> Answer:
    """The reply of `answer` as a record; raises CiteRayError where another version replied."""
    try:
        return ANSWER.validate_python(reply)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "the reply"
        raise CiteRayError(
            f"/v1/answer: the reply is not an answer of this version of CiteRay ({place}: "
            f"{problem['msg']}); run the same version at both ends"
        ) from error


class HttpClient:
    """Calls a running endpoint. A 4xx is an InputError, anything else a CiteRayError."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._endpoint = Endpoint(url, timeout_s)

    def search(self, request: Mapping[str, Any]) -> Reply:
        """See `Client.search`."""
        return self._post("/v1/search", request)

    def answer(self, request: Mapping[str, Any]) -> Reply:
        """See `Client.answer`."""
        return self._post("/v1/answer", request)

    def batch_run(self, job_id: str) -> bytes:
        """The run file of a finished batch; raises as the others do."""
        return self._endpoint.read("GET", f"/v1/batches/{quote(job_id, safe='')}/run")

    def _post(self, path: str, request: Mapping[str, Any]) -> Reply:
        try:
            reply: Reply = json.loads(self._endpoint.read("POST", path, dict(request)))
        except ValueError as error:
            raise CiteRayError(f"{path}: the reply is no JSON; is this CiteRay?") from error
        return reply

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._endpoint.close()


class OwnLoop:
    """An event loop in a thread of this process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` on the loop and give its result; safe from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """End the loop, its asynchronous generators, and the thread."""
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class LocalClient:
    """Runs the path on an event loop in a thread of this process.

    `models` are those of the settings that are behind a URL, where none are given.
    """

    def __init__(self, settings: Settings, models: ModelRoles | None = None) -> None:
        from serve.graph.local_graph import local_answerer
        from serve.llm.model_roles import find_models

        name_systems(settings.serve.systems)
        self._system = settings.serve.system
        self._answerer = local_answerer(settings, models or find_models(settings))
        self._loop = OwnLoop()

    def search(self, request: Mapping[str, Any]) -> Reply:
        """See `Client.search`."""
        asked = _checked(SearchRequest, request).as_request(self._system)
        return asdict(self._loop.run(self._answerer.search(asked)))

    def answer(self, request: Mapping[str, Any]) -> Reply:
        """See `Client.answer`."""
        asked = _checked(AnswerRequest, request).as_request(self._system)
        return asdict(self._loop.run(self._answerer.answer(asked)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.close()


def _checked(form: type[R], request: Mapping[str, Any]) -> R:
    try:
        return form.model_validate(dict(request))
    except ValidationError as error:
        raise InputError(explain_problems(error.errors())) from error


def endpoint_url(settings: Settings) -> str:
    """URL of the endpoint from this machine: 127.0.0.1 where it listens on all addresses."""
    host = settings.serve.host
    reachable = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return f"http://{f'[{reachable}]' if ':' in reachable else reachable}:{settings.serve.port}"


def running_client(settings: Settings) -> HttpClient | None:
    """A client of the endpoint at serve.host:serve.port if it answers questions, else None.

    It does so with a stage that is lost, too, and says so in its answers.
    """
    url = endpoint_url(settings)
    try:
        with open_client(timeout=PROBE_TIMEOUT) as http:
            reply = http.get(f"{url}/readyz")
        found = reply.json()
        answers = reply.status_code == 200 or "loading" not in found["stages"].values()
        if "index_version" not in found or not answers:
            return None
    except (httpx.HTTPError, AttributeError, KeyError, ValueError, TypeError):
        return None
    return HttpClient(url, timeout_s=settings.serve.request_deadline_s + 10)


class ServedClient(HttpClient):
    """Starts the whole Serve graph for the length of a `with` block, and stops it after."""

    def __init__(self, settings: Settings, log: Console) -> None:
        super().__init__(endpoint_url(settings), settings.serve.request_deadline_s + 10)
        self._settings = settings
        self._log = log
        self._session = ExitStack()

    def __enter__(self) -> Self:
        from serve.graph.run_graph import running_graph

        self._session.enter_context(running_graph(self._settings, self._log))
        return self

    def __exit__(self, *failure: object) -> None:
        super().__exit__(*failure)
        self._session.close()


def local_client(settings: Settings, log: Console, *, model: bool) -> Client:
    """The graph in this process; through Ray Serve where a `model` that it starts is wanted."""
    from serve.llm.model_roles import serves_models

    if model and serves_models(settings):
        return ServedClient(settings, log)
    return LocalClient(settings)
