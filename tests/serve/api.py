"""The HTTP API over a graph: as an application, in process, or behind a socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args
from unittest.mock import patch

from fastapi import FastAPI
from fastapi._compat import v2 as fastapi_fields
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from cluster.settings.presets import system_names
from cluster.settings.settings import load_settings
from serve.http import mcp_tools
from serve.http.api import create_api
from serve.http.middleware.admission import Admission
from serve.http.service import Graph
from tests.serve.http_server import serving

_ADAPTERS: dict[tuple[Any, str], TypeAdapter[Any]] = {}
_LISTED: dict[tuple[str, ...], Any] = {}
_list = mcp_tools.Tool.listed


def _adapter(of: Any, *, config: Any) -> TypeAdapter[Any]:
    """Return the adapter of a field; FastAPI makes 200 of them for each application, in 0.3 s."""
    annotation, *metadata = get_args(of)
    key = (annotation, repr((metadata, config)))
    if key not in _ADAPTERS:
        _ADAPTERS[key] = TypeAdapter(of, config=config)
    return _ADAPTERS[key]


def _listed(tool: mcp_tools.Tool) -> Any:
    """Return the description of a tool; its schemas would take half of the time of `create_api`."""
    key = (tool.name, *system_names())
    if key not in _LISTED:
        _LISTED[key] = _list(tool)
    return _LISTED[key]


def make_api(graph: Graph, *overrides: str, **parts: Any) -> FastAPI:
    """Return the API with default settings, except for `overrides` such as "http.body_kb=1"."""
    settings = load_settings(overrides=[f"serve.{override}" for override in overrides])
    with (
        patch.object(mcp_tools.Tool, "listed", _listed),
        patch.object(fastapi_fields, "TypeAdapter", _adapter),
    ):
        return create_api(graph, settings.serve, **{"admission": Admission.of(settings), **parts})


def client_of(graph: Graph, *overrides: str, **parts: Any) -> TestClient:
    return TestClient(make_api(graph, *overrides, **parts), raise_server_exceptions=False)


@contextmanager
def served_api(graph: Graph, *overrides: str, **parts: Any) -> Iterator[str]:
    """Serve the API, and yield its URL."""
    with serving(make_api(graph, *overrides, **parts)) as port:
        yield f"http://127.0.0.1:{port}"
