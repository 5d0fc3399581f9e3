"""Runs of a batch by the client of an API over a small index, without a socket."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from cluster.errors import CiteRayError
from evaluation.lint.lint_run import check_run, read_asked, read_run_file
from serve.client.answer_batch import Batch, answer_batch
from serve.client.call_endpoint import Endpoint
from serve.client.open_client import HttpClient, Reply
from tests.serve.api import client_of
from tests.serve.service import SmallService


class ServiceClient(HttpClient):
    """Client that records its requests in `asked`; it fails for the ids in `lost`."""

    def __init__(self, service: SmallService, lost: Sequence[str] = ()) -> None:
        http: Any = client_of(service)
        self._endpoint = Endpoint("http://localhost", 60, http=http)
        self._lost = lost
        self._lock = threading.Lock()
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def post(self, path: str, request: Mapping[str, Any]) -> Reply:
        with self._lock:
            self.asked.append((path, request))
        if request.get("id") in self._lost:
            raise CiteRayError(f"{request['id']} is lost")
        return super().post(path, request)

    def ids(self) -> list[str]:
        return [request["id"] for _, request in self.asked if "id" in request]


def run_batch(
    client: ServiceClient,
    batch: Batch,
    output: Path,
    system: str = "bm25",
    *,
    answers: bool = True,
    concurrent: int = 1,
) -> dict[str, dict[str, int]]:
    log = Console(file=io.StringIO())
    return answer_batch(
        client, batch, output, system, answers=answers, concurrent=concurrent, log=log
    )


def linted_rows(output: Path, asked: Path, run_format: str) -> list[dict[str, Any]]:
    """Return the records of a run file after a check that the linter finds no problem in it."""
    read = read_run_file(output, run_format)
    assert check_run(read, read_asked(asked)).problems == ()
    return read.rows
