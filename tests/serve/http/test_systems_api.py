"""The presets as the page offers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from cluster.settings.presets import name_systems, system_names
from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow


@pytest.fixture
def client(service: SmallService) -> TestClient:
    service.models = {}
    return TestClient(create_api(service, load_settings().serve))


def systems(client: TestClient) -> dict[str, dict]:
    return {card["name"]: card for card in client.get("/v1/systems").json()["systems"]}


@pytest.fixture
def ward(service: SmallService) -> Iterator[TestClient]:
    """The API where the operator names a preset."""
    settings = load_settings(overrides=["serve.systems.ward={over: bm25, evidence: 1}"]).serve
    name_systems(settings.systems)
    yield TestClient(create_api(service, settings))
    name_systems({})


def test_a_preset_that_the_operator_names_answers_and_no_other(ward: TestClient) -> None:
    asked = {"question": "Does metformin activate AMPK?"}
    found = ward.post("/v1/search", json={**asked, "system": "ward"}).json()
    assert (found["system"], len(found["evidence"])) == ("ward", 1)
    assert "ward" in [model["id"] for model in ward.get("/v1/models").json()["data"]]
    for system in ("two", "ward.yaml", "/etc/passwd.yaml", "../ward"):
        reply = ward.post("/v1/search", json={**asked, "system": system})
        assert (reply.status_code, "unknown; there are: aqams" in reply.text) == (422, True), system


def test_the_default_preset_comes_first_and_one_of_the_operators_last(ward: TestClient) -> None:
    reply = ward.get("/v1/systems").json()
    names = [card["name"] for card in reply["systems"]]
    assert sorted(names) == sorted(system_names())
    assert reply["recommended"] == names[0] == "citeray"
    last = reply["systems"][-1]
    assert (last["name"], last["title"], last["group"]) == ("ward", "ward", "own")


def test_presets_that_lack_a_model_say_why_they_cannot_run(
    client: TestClient, service: SmallService
) -> None:
    cards = systems(client)
    assert cards["citeray"]["available"]
    assert (cards["sinai"]["missing"], cards["huang"]["missing"]) == (["writer"], ["rewriter"])
    card = cards["citeray-model"]
    assert (card["available"], card["missing"]) == (False, ["writer"])
    assert "needs a language model that writes" in card["reason"]
    service.models = {"llm": "none", "rewriter-0": "small"}
    cards = systems(client)
    assert cards["huang"]["available"]
    assert cards["udine-b"]["missing"] == ["writer", "ranker"]
    service.models = {"llm": "qwen"}
    assert all(card["available"] for card in systems(client).values())


def test_records_come_in_the_order_asked_for_and_missing_ones_are_named(
    client: TestClient, service: SmallService, subtests: pytest.Subtests
) -> None:
    found = client.get("/v1/citations?pmids=2,1,9,2").json()
    assert [citation["pmid"] for citation in found["citations"]] == [2, 1]
    assert found["missing"] == [9]
    for pmids in ["", "x", "1,,2", "0", "1_0", ",".join(["1"] * 101)]:
        with subtests.test(pmids=pmids):
            reply = client.get("/v1/citations", params={"pmids": pmids})
            assert reply.status_code == 422
            assert "pmids" in reply.json()["detail"]
    service.state = "loading"
    reply = client.get("/v1/citations?pmids=1")
    assert (reply.status_code, bool(reply.headers["retry-after"])) == (503, True)
    service.state = "ready"
