"""The page of the HTTP API lists exactly the API's routes, fields and statuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from serve.contracts.problem_forms import MEANINGS
from serve.contracts.request_forms import AnswerRequest
from serve.http.event_stream import NAMES
from tests.documentation import TEXTS
from tests.serve.api import make_api
from tests.serve.saved.kept import saved_at
from tests.serve.service import SmallService

PAGE = TEXTS["docs/http-api.md"]
# Routes of the server that its OpenAPI document leaves out.
UNLISTED = {("GET", "/"), ("GET", "/docs"), ("GET", "/openapi.json")}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    service = SmallService()
    batches: Any = object()
    saved = saved_at(tmp_path_factory.mktemp("saved"))
    api = make_api(service, batches=batches, saved=saved)
    document: dict[str, Any] = api.openapi()
    return document


def rows(title: str) -> list[str]:
    """Return the first cell of each table row below the heading `title`."""
    part = PAGE[PAGE.index(f"{title}\n") :]
    table = re.search(r"^\| ---.*\n((?:\|.*\n)+)", part, re.M)
    assert table
    return [line.split(" | ")[0].removeprefix("| ") for line in table[1].splitlines()]


def test_page_lists_the_routes_of_the_api(document: dict[str, Any]) -> None:
    documented = set(re.findall(r"`(GET|POST|DELETE) ([^`]+)`", "\n".join(rows("# HTTP API"))))
    there = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert documented - UNLISTED == {route for route in there if route[1] != "/mcp"}


def test_page_lists_the_fields_of_a_request() -> None:
    fields = [cell.strip("`") for cell in rows("## An answer")]
    assert fields.count("question") == 1
    assert set(fields) == set(AnswerRequest.model_fields)


def test_page_lists_the_events_of_a_stream() -> None:
    assert [cell.strip("`") for cell in rows("## Streaming")] == list(NAMES)


def test_page_lists_the_statuses_of_the_api() -> None:
    documented = {int(status) for cell in rows("## Errors") for status in re.findall(r"\d+", cell)}
    # 400 is OpenAI's form of 422.
    assert documented == MEANINGS.keys() - {400}
