from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient

from serve.graph.gateway import Cluster, Gateway
from serve.http.middleware.request_log import Meters
from tests.serve.local_handle import LocalHandle
from tests.serve.saved.kept import settings_at
from tests.serve.service import CORPUS
from tests.serve.small_graph import make_answerer
from tests.small_index import make_index


def gateway_at(folder: Path, **values: Any) -> Gateway:
    """Return a gateway over a small graph in this process."""
    settings = settings_at(folder, **values)
    manifest = make_index(folder / "index", CORPUS, shards=2)
    stages: dict[str, Any] = {name: LocalHandle(Mock()) for name in ("expander", "encoder")}
    none: Any = object()
    gateway = Gateway(settings, manifest, stages, [], none, Cluster(Meters, list))
    # Without shards, the deployed version is the served one.
    gateway._backend.handles.pop("expander")
    gateway.answerer = make_answerer(folder / "graph", CORPUS)
    return gateway


def test_gateway_checks_saved_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.saved.watches.keep_checking.POLL_S", 0.05)
    gateway = gateway_at(tmp_path, checks_per_minute=6000)
    with TestClient(gateway.__serve_build_asgi_app__()) as http:
        asked = {"question": "Does metformin activate AMPK?", "type": "yesno"}
        place = http.post("/v1/watches", json=asked).json()["id"]
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            found = http.get(f"/v1/watches/{place}").json()
            if found["answer"] or found["error"]:
                break
            time.sleep(0.05)
    assert found["error"] == ""
    assert found["answer"]["ideal"][0]["pmids"] == [1]
    assert len(found["history"]) == 1


def test_gateway_without_a_database_has_no_routes_for_saved_data(tmp_path: Path) -> None:
    gateway = gateway_at(tmp_path, url="")
    with TestClient(gateway.__serve_build_asgi_app__()) as http:
        for path in ("/v1/watches", "/v1/answers"):
            assert http.get(path).status_code == 404
