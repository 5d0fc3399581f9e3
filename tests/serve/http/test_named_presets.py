"""Over HTTP only presets that ship or that the operator names can be asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from cluster.settings.presets import name_systems
from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.serve.service import SmallService

QUESTION = "Does metformin activate AMPK?"


@pytest.fixture(scope="module")
def http() -> Iterator[TestClient]:
    override = "serve.systems.one={over: bm25, evidence: 1}"
    settings = load_settings(overrides=[override]).serve
    name_systems(settings.systems)
    yield TestClient(create_api(SmallService(), settings))
    name_systems({})


def test_a_named_preset_answers_and_no_other(http: TestClient) -> None:
    found = http.post("/v1/search", json={"question": QUESTION, "system": "one"}).json()
    assert (found["system"], len(found["evidence"])) == ("one", 1)
    for system in ("two", "one.yaml", "/etc/passwd.yaml", "../one"):
        reply = http.post("/v1/search", json={"question": QUESTION, "system": system})
        assert (reply.status_code, "unknown; there are: aqams" in reply.text) == (422, True), system


def test_a_named_preset_is_listed_wherever_presets_are(http: TestClient) -> None:
    assert "one" in [model["id"] for model in http.get("/v1/models").json()["data"]]
    form = http.get("/openapi.json").json()["components"]["schemas"]["SearchRequest"]
    assert "one" in form["properties"]["system"]["anyOf"][0]["enum"]
