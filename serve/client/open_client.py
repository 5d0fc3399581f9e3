"""Common client interface for a running endpoint and for the graph in this process.

Requests and responses are the JSON of `/v1/search` and `/v1/answer`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Self
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError

from cluster.answers import Answer
from cluster.errors import CiteRayError, InputError
from cluster.http_clients import open_client
from cluster.problem_words import problem_words
from cluster.settings.settings import Settings
from cluster.settings.store_digests import store_digests
from serve.client.call_endpoint import Endpoint
from serve.contracts.readiness import Readiness

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
        where = ".".join(map(str, problem["loc"])) or "the reply"
        raise CiteRayError(
            f"/v1/answer: the reply is not an answer of this version of CiteRay ({where}: "
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
        where = f"/v1/answers/{quote(answer_id, safe='')}/strategy"
        return self.post(f"{where}?max_hits={max_hits}", {})

    def batch_run(self, job_id: str) -> bytes:
        """Return the run file of a finished batch; raise the same errors as the other calls."""
        return self._endpoint.read("GET", f"/v1/batches/{quote(job_id, safe='')}/run")

    def close(self) -> None:
        """Close all connections."""
        self._endpoint.close()


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
