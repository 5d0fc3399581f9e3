"""The HTTP API over a graph: as an application, in process, or behind a socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from fastapi import FastAPI
from starlette.testclient import TestClient

from cluster.settings.presets import system_names
from cluster.settings.settings import load_settings
from serve.http import mcp_tools
from serve.http.api import create_api
from serve.http.middleware.admission import Admission
from serve.http.service import Graph
from tests.serve.http_server import serving

_LISTED: dict[tuple[str, ...], Any] = {}
_list = mcp_tools.Tool.listed


def _listed(tool: mcp_tools.Tool) -> Any:
    """Return the description of a tool; its schemas would take half of the time of `create_api`."""
    key = (tool.name, *system_names())
    if key not in _LISTED:
        _LISTED[key] = _list(tool)
    return _LISTED[key]


def make_api(graph: Graph, *overrides: str, **parts: Any) -> FastAPI:
    """Return the API with default settings, except for `overrides` such as "http.body_kb=1"."""
    settings = load_settings(overrides=[f"serve.{override}" for override in overrides])
    with patch.object(mcp_tools.Tool, "listed", _listed):
        return create_api(graph, settings.serve, **{"admission": Admission.of(settings), **parts})


def client_of(graph: Graph, *overrides: str, **parts: Any) -> TestClient:
    return TestClient(make_api(graph, *overrides, **parts), raise_server_exceptions=False)


@contextmanager
def served_api(graph: Graph, *overrides: str, **parts: Any) -> Iterator[str]:
    """Serve the API, and yield its URL."""
    with serving(make_api(graph, *overrides, **parts)) as port:
        yield f"http://127.0.0.1:{port}"
