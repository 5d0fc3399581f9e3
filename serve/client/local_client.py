"""Clients that run the question-answering graph themselves.

A client of a running endpoint starts faster, because it imports none of this module.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError
from rich.console import Console

from cluster.errors import InputError
from cluster.settings.presets import name_systems
from cluster.settings.settings import Settings
from serve.client.open_client import Client, HttpClient, Reply, endpoint_url
from serve.contracts.request_forms import AnswerRequest, SearchRequest, explain_problems
from serve.graph.local_graph import local_answerer
from serve.http.boolean_forms import BooleanExport, BooleanRequest, export_text
from serve.llm.model_roles import find_models, serves_models
from serve.pipeline.boolean_reply import match_query

T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)


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

    Its language models are those that the settings name by URL.
    """

    def __init__(self, settings: Settings) -> None:
        name_systems(settings.serve.systems)
        self._system = settings.serve.system
        self._answerer = local_answerer(settings, find_models(settings))
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
                # Imported here because it imports all of MCP and SQLAlchemy, which takes a second.
                from serve.http.strategy_api import StrategyRequest, strategy_reply

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
    if model and serves_models(settings):
        return ServedClient(settings, log)
    return LocalClient(settings)
